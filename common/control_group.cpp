#include "common/control_group.hpp"

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>
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

// Where a controller's groups are mounted, and this process's group below it.
struct Group {
    std::string mount;
    std::string path;  // "/" or "/a/b"
    bool is_version_2 = false;

    // Its own folder first, then those around it, whose limits hold as well. In a container the
    // path may be the host's and not exist here: then the mount itself is the group.
    template <typename Look>
    uint64_t least(Look look) const {
        std::string inner = path == "/" ? "" : path;
        uint64_t value = look(mount + inner);
        while (!inner.empty()) {
            inner.erase(inner.rfind('/'));
            value = std::min(value, look(mount + inner));
        }
        return value;
    }
};

// Lines are "ID:CONTROLLERS:PATH", with the controllers named in version 1 and empty, with ID 0, in
// version 2.
Group group_of(std::string_view controller) {
    std::ifstream groups("/proc/self/cgroup");
    Group found;
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':');
        const size_t second = line.find(':', first + 1);
        if (second == std::string::npos || line.compare(second + 1, 1, "/") != 0) {
            continue;
        }
        const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
        const std::string path = line.substr(second + 1);
        if (names.find("," + std::string(controller) + ",") != std::string::npos) {
            return {"/sys/fs/cgroup/" + std::string(controller), path, false};
        }
        if (line.rfind("0::", 0) == 0) {
            found = {"/sys/fs/cgroup", path, true};
        }
    }
    return found;
}

// What the group uses but could give back at once: files that were read some time ago.
uint64_t reclaimable(const std::string& folder, const std::string& field) {
    std::ifstream file(folder + "/memory.stat");
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        std::string name;
        uint64_t bytes = 0;
        if (fields >> name >> bytes && name == field) {
            return bytes;
        }
    }
    return 0;
}

uint64_t memory_left_in(const std::string& folder, bool is_version_2) {
    const uint64_t limit =
        read_limit(folder + (is_version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
    const uint64_t used =
        read_limit(folder + (is_version_2 ? "/memory.current" : "/memory.usage_in_bytes"));
    if (limit == unlimited || used == unlimited) {
        return unlimited;
    }
    const uint64_t back =
        reclaimable(folder, is_version_2 ? "inactive_file" : "total_inactive_file");
    const uint64_t needed = used - std::min(used, back);
    return limit - std::min(limit, needed);
}

}  // namespace

uint64_t control_group_memory_left() {
    const Group group = group_of("memory");
    return group.least(
        [&](const std::string& folder) { return memory_left_in(folder, group.is_version_2); });
}

uint64_t control_group_task_limit() {
    return group_of("pids").least(
        [](const std::string& folder) { return read_limit(folder + "/pids.max"); });
}

}  // namespace echelle
