#include "coordinator/orphans.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <sys/wait.h>
#include <unistd.h>

namespace echelle {
namespace {

// Field 4 of /proc/PID/stat, counted after the command's closing parenthesis.
pid_t parent_of(const std::string& pid) {
    std::ifstream file("/proc/" + pid + "/stat");
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return -1;
    }
    std::istringstream fields(line.substr(name_end + 1));
    std::string state;
    pid_t parent = -1;
    fields >> state >> parent;
    return parent;
}

}  // namespace

std::vector<pid_t> children_of_this_process() {
    std::vector<pid_t> children;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc", error), end; entry != end;
         entry.increment(error)) {
        const std::string name = entry->path().filename();
        const bool is_pid = std::all_of(name.begin(), name.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
        if (is_pid && parent_of(name) == getpid()) {
            children.push_back(std::stoi(name));
        }
    }
    return children;
}

void end_child(pid_t child) {
    siginfo_t seen{};
    if (waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOWAIT | WNOHANG) != 0) {
        return;
    }
    kill(child, SIGKILL);
    while (waitid(P_PID, static_cast<id_t>(child), &seen, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
}

}  // namespace echelle
