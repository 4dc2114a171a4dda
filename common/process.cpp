#include "common/process.hpp"

#include <fstream>
#include <sstream>
#include <string>

#include <unistd.h>

namespace echelle {

namespace {

// Fields of such a file from the third, the state, on. The command name before it may hold spaces
// and parentheses: fields are counted after the last ')'. Empty when there is no such file.
std::istringstream fields_from_state(const std::string& stat_file) {
    std::ifstream file(stat_file);
    std::string line;
    std::getline(file, line);
    const size_t name_end = line.rfind(')');
    return std::istringstream(name_end == std::string::npos ? "" : line.substr(name_end + 1));
}

}  // namespace

ThreadActivity main_thread_activity(pid_t pid) {
    const std::string number = std::to_string(pid);
    std::istringstream fields = fields_from_state("/proc/" + number + "/task/" + number + "/stat");
    ThreadActivity activity;
    fields >> activity.state;
    std::string skipped;
    for (int field = 4; field < 14; ++field) {
        fields >> skipped;
    }
    int64_t user_ticks = 0;
    int64_t system_ticks = 0;
    if (fields >> user_ticks >> system_ticks) {
        activity.cpu_ns = (user_ticks + system_ticks) * (1'000'000'000 / sysconf(_SC_CLK_TCK));
    }
    return activity;
}

uint64_t process_start_ticks(pid_t pid) {
    std::istringstream fields = fields_from_state("/proc/" + std::to_string(pid) + "/stat");
    std::string state;
    fields >> state;
    if (state == "Z" || state == "X") {
        return 0;
    }
    std::string skipped;
    for (int field = 4; field < 22; ++field) {
        fields >> skipped;
    }
    uint64_t ticks = 0;
    fields >> ticks;
    return ticks;
}

}  // namespace echelle
