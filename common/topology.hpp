// Which CPUs there are for us, in the order in which workers should take them, and binding to them.
// Called before anything is forked (reading) and by a worker on itself (binding).
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace echelle {

struct Cpu {
    unsigned int number = 0;  // as the operating system counts them
    unsigned int node = 0;    // NUMA node
    unsigned int thread = 0;  // rank of this hardware thread within its core, 0 for the first
};

// The CPUs that this process may use (allowed by the machine or its control group, and in this
// process's affinity mask): one of each core first, then the cores' further hardware threads.
// Never empty.
std::vector<Cpu> usable_cpus();
// CPUs that are online, whoever may use them.
uint32_t cpus_of_machine();

// The NUMA node that holds the memory at that address, which must have been touched; nothing where
// the system doesn't tell.
std::optional<unsigned int> node_of_memory(const void* address);

// The same CPUs, those of `node` first among equals: one of each core still comes before any core's
// further hardware threads, since a whole core on a far node does more than half a near one.
std::vector<Cpu> nearest_first(std::vector<Cpu> cpus, unsigned int node);

// "0-3,6" -> 0 1 2 3 6. Throws UsageError on other text, and on CPUs that are not usable.
std::vector<Cpu> parse_cpu_list(std::string_view text, const std::vector<Cpu>& usable);

// Binds the calling thread. Answers the CPU that it is bound to according to the kernel, or nothing
// when it could not be bound.
std::optional<unsigned int> bind_this_thread(unsigned int cpu);

}  // namespace echelle
