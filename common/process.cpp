#include "common/process.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace echelle {

uint64_t process_start_ticks(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string line;
    std::getline(file, line);
    // The command name may hold spaces and parentheses: fields are counted after the last ')'.
    const size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) {
        return 0;
    }
    std::istringstream fields(line.substr(name_end + 1));
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
