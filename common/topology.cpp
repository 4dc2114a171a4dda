#include "common/topology.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>

#include <hwloc.h>
#include <sched.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

struct TopologyDeleter {
    void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Topology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

Topology load_topology() {
    // hwloc asks for the affinity mask as well, again and again until it gets one
    // (hwloc_linux_find_kernel_nr_cpus).
    cpu_set_t mask;
    hwloc_topology_t topology = nullptr;
    if (sched_getaffinity(0, sizeof mask, &mask) != 0 || hwloc_topology_init(&topology) != 0) {
        return nullptr;
    }
    Topology owned(topology);
    return hwloc_topology_load(topology) == 0 ? std::move(owned) : nullptr;
}

bool in_affinity_mask(const cpu_set_t& mask, unsigned int cpu) {
    return cpu < CPU_SETSIZE && CPU_ISSET(cpu, &mask);
}

unsigned int node_of(hwloc_obj_t unit) {
    return unit->nodeset != nullptr && hwloc_bitmap_first(unit->nodeset) >= 0
               ? static_cast<unsigned int>(hwloc_bitmap_first(unit->nodeset))
               : 0;
}

// Rank of a hardware thread within its core: 0 for the first.
unsigned int rank_in_core(hwloc_obj_t unit) {
    const hwloc_obj_t parent = unit->parent;
    return parent != nullptr && parent->type == HWLOC_OBJ_CORE ? unit->sibling_rank : 0;
}

}  // namespace

uint32_t cpus_of_machine() {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? static_cast<uint32_t>(online) : 1;
}

std::vector<Cpu> usable_cpus() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    const bool has_mask = sched_getaffinity(0, sizeof mask, &mask) == 0;

    std::vector<Cpu> cpus;
    if (const Topology topology = load_topology()) {
        const hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology.get());
        hwloc_obj_t unit = nullptr;
        while ((unit = hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_PU, unit)) != nullptr) {
            if (hwloc_bitmap_isset(allowed, unit->os_index) != 0 &&
                (!has_mask || in_affinity_mask(mask, unit->os_index))) {
                cpus.push_back({unit->os_index, node_of(unit), rank_in_core(unit)});
            }
        }
    }
    if (cpus.empty()) {
        // hwloc sees no machine (a container without /sys): the affinity mask is what there is, and
        // where that may not be read, those that are online.
        const unsigned int most = has_mask ? CPU_SETSIZE : cpus_of_machine();
        for (unsigned int cpu = 0; cpu < most; ++cpu) {
            if (!has_mask || in_affinity_mask(mask, cpu)) {
                cpus.push_back({cpu, 0, 0});
            }
        }
    }
    std::stable_sort(cpus.begin(), cpus.end(),
                     [](const Cpu& a, const Cpu& b) { return a.thread < b.thread; });
    if (cpus.empty()) {
        cpus.push_back({});
    }
    return cpus;
}

std::optional<unsigned int> node_of_memory(const void* address) {
    const Topology topology = load_topology();
    if (topology == nullptr) {
        return std::nullopt;
    }
    const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> nodes(hwloc_bitmap_alloc(),
                                                                              hwloc_bitmap_free);
    if (hwloc_get_area_memlocation(topology.get(), address, 1, nodes.get(),
                                   HWLOC_MEMBIND_BYNODESET) != 0 ||
        hwloc_bitmap_weight(nodes.get()) != 1) {
        return std::nullopt;
    }
    return static_cast<unsigned int>(hwloc_bitmap_first(nodes.get()));
}

std::vector<Cpu> nearest_first(std::vector<Cpu> cpus, unsigned int node) {
    std::stable_sort(cpus.begin(), cpus.end(), [node](const Cpu& a, const Cpu& b) {
        return a.thread != b.thread ? a.thread < b.thread : a.node == node && b.node != node;
    });
    return cpus;
}

namespace {

unsigned int parse_cpu_number(std::string_view text, std::string_view list) {
    unsigned int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || end != text.data() + text.size()) {
        throw UsageError("CPU list '" + std::string(list) +
                         "' is not understood: give numbers and ranges such as 0-3,6");
    }
    return value;
}

}  // namespace

std::vector<Cpu> parse_cpu_list(std::string_view text, const std::vector<Cpu>& usable) {
    std::vector<Cpu> cpus;
    std::string_view rest = text;
    while (true) {
        const size_t comma = rest.find(',');
        const std::string_view item = rest.substr(0, comma);
        const size_t dash = item.find('-');
        const unsigned int first = parse_cpu_number(item.substr(0, dash), text);
        const unsigned int last =
            dash == std::string_view::npos ? first : parse_cpu_number(item.substr(dash + 1), text);
        if (last < first || last - first > 65536) {
            throw UsageError("CPU list '" + std::string(text) + "' holds the impossible range " +
                             std::string(item));
        }
        for (unsigned int number = first; number <= last; ++number) {
            const auto found = std::find_if(usable.begin(), usable.end(), [number](const Cpu& cpu) {
                return cpu.number == number;
            });
            if (found == usable.end()) {
                throw UsageError(
                    "CPU " + std::to_string(number) +
                    " is not among those that this process may use; see `taskset -p $$`"
                    " and the control group's cpuset");
            }
            cpus.push_back(*found);
        }
        if (comma == std::string_view::npos) {
            return cpus;
        }
        rest.remove_prefix(comma + 1);
    }
}

std::optional<unsigned int> bind_this_thread(unsigned int cpu) {
    if (cpu >= CPU_SETSIZE) {
        return std::nullopt;
    }
    cpu_set_t wanted;
    CPU_ZERO(&wanted);
    CPU_SET(cpu, &wanted);
    if (sched_setaffinity(0, sizeof wanted, &wanted) != 0) {
        return std::nullopt;
    }
    // Read back: a control group may have narrowed the set meanwhile.
    cpu_set_t got;
    CPU_ZERO(&got);
    if (sched_getaffinity(0, sizeof got, &got) != 0 || CPU_COUNT(&got) != 1 ||
        !CPU_ISSET(cpu, &got)) {
        return std::nullopt;
    }
    return cpu;
}

}  // namespace echelle
