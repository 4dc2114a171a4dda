#include "clients/ctl/live_terminal.hpp"

#include <array>
#include <csignal>
#include <cstdio>
#include <sstream>
#include <vector>

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace echelle {
namespace {

// Control sequences of ECMA-48, and DEC's for the cursor.
constexpr const char* clear_screen = "\033[2J";
constexpr const char* go_home = "\033[H";
constexpr const char* clear_rest_of_line = "\033[K";
constexpr const char* clear_below = "\033[J";
constexpr const char* hide_cursor = "\033[?25l";
constexpr const char* show_cursor = "\033[?25h";

void write_out(const std::string& text) {
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
}

}  // namespace

LiveTerminal::LiveTerminal()
    : is_live_(isatty(STDOUT_FILENO) == 1),
      takes_keys_(is_live_ && tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_live_) {
        return;
    }
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        sigaddset(&ending, signal);
    }
    sigprocmask(SIG_BLOCK, &ending, nullptr);
    signals_ = FileDescriptor(signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK));
    if (takes_keys_) {
        termios keys = before_;
        keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    write_out(std::string(hide_cursor) + clear_screen);
}

LiveTerminal::~LiveTerminal() {
    if (takes_keys_) {
        tcsetattr(STDIN_FILENO, TCSANOW, &before_);
    }
    if (is_live_) {
        write_out(show_cursor);
    }
}

std::string fitted(const std::string& page, size_t rows, size_t columns) {
    std::vector<std::string> lines;
    std::istringstream text(page);
    for (std::string line; std::getline(text, line);) {
        lines.push_back(line.substr(0, columns));
    }
    if (lines.size() > rows && rows > 0) {
        const size_t left_out = lines.size() - (rows - 1);
        lines.resize(rows - 1);
        const std::string note = "... " + std::to_string(left_out) + " more lines";
        lines.push_back(note.substr(0, columns));
    }
    std::string fitting;
    for (const std::string& line : lines) {
        fitting += line + '\n';
    }
    return fitting;
}

void LiveTerminal::show(const std::string& page) const {
    if (!is_live_) {
        write_out(page);
        return;
    }
    winsize size{};
    const bool known =
        ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 1 && size.ws_col > 0;
    // The line after the last one is the cursor's.
    std::istringstream lines(known ? fitted(page, size.ws_row - 1U, size.ws_col) : page);
    std::string drawn = go_home;
    for (std::string line; std::getline(lines, line);) {
        drawn += line + clear_rest_of_line + '\n';
    }
    write_out(drawn + clear_below);
}

bool LiveTerminal::wait_for_end(int milliseconds) const {
    std::array<pollfd, 2> watched{pollfd{signals_.get(), POLLIN, 0},
                                  pollfd{takes_keys_ ? STDIN_FILENO : -1, POLLIN, 0}};
    if (poll(watched.data(), watched.size(), milliseconds) <= 0) {
        return false;
    }
    if (watched[0].revents != 0) {
        return true;
    }
    std::array<char, 64> keys{};
    const ssize_t count = read(STDIN_FILENO, keys.data(), keys.size());
    if (count <= 0) {
        return true;  // the terminal is gone
    }
    const std::string_view typed(keys.data(), static_cast<size_t>(count));
    return typed.find_first_of("qQ") != std::string_view::npos;
}

}  // namespace echelle
