#include "common/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

namespace echelle {
namespace {

constexpr uint64_t unlimited = std::numeric_limits<uint64_t>::max();

uint64_t read_limit(const std::string& path) {
    std::ifstream file(path);
    uint64_t value = 0;
    return file >> value ? value : unlimited;  // absent, or "max"
}

// The group's folder for a controller: lines are "ID:CONTROLLERS:PATH", with the controllers named
// in version 1 and empty, with ID 0, in version 2.
std::string folder_of(std::string_view controller, bool& is_version_2) {
    std::ifstream groups("/proc/self/cgroup");
    std::string found;
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':');
        const size_t second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (names.find("," + std::string(controller) + ",") != std::string::npos) {
            is_version_2 = false;
            return "/sys/fs/cgroup/" + std::string(controller) + path;
        }
        if (line.rfind("0::", 0) == 0) {
            is_version_2 = true;
            found = "/sys/fs/cgroup" + path;
        }
    }
    return found;
}

}  // namespace

uint64_t control_group_memory_left() {
    bool is_version_2 = false;
    const std::string folder = folder_of("memory", is_version_2);
    const uint64_t limit =
        read_limit(folder + (is_version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const uint64_t used =
        read_limit(folder + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (limit == unlimited || used == unlimited) {
        return unlimited;
    }
    return limit > used ? limit - used : 0;
}

uint64_t control_group_task_limit() {
    bool is_version_2 = false;
    return read_limit(folder_of("pids", is_version_2) + "/pids.max");
}

}  // namespace echelle
