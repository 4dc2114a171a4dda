#include "common/topology.hpp"

#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sched.h>

#include "common/error.hpp"

namespace echelle {
namespace {

std::vector<unsigned int> numbers(const std::vector<Cpu>& cpus) {
    std::vector<unsigned int> result;
    result.reserve(cpus.size());
    for (const Cpu& cpu : cpus) {
        result.push_back(cpu.number);
    }
    return result;
}

cpu_set_t affinity() {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    EXPECT_EQ(sched_getaffinity(0, sizeof mask, &mask), 0);
    return mask;
}

TEST(UsableCpus, AreThoseOfTheAffinityMaskEachOnce) {
    const std::vector<Cpu> cpus = usable_cpus();
    const cpu_set_t mask = affinity();
    std::set<unsigned int> seen;
    for (const Cpu& cpu : cpus) {
        EXPECT_TRUE(CPU_ISSET(cpu.number, &mask)) << cpu.number;
        EXPECT_TRUE(seen.insert(cpu.number).second) << cpu.number;
    }
    EXPECT_EQ(cpus.size(), static_cast<size_t>(CPU_COUNT(&mask)));
    EXPECT_GE(cpus_of_machine(), cpus.size());
}

TEST(UsableCpus, FollowANarrowerMask) {
    std::thread([] {
        const unsigned int last = usable_cpus().back().number;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(last, &one);
        ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
        EXPECT_EQ(numbers(usable_cpus()), (std::vector<unsigned int>{last}));
    }).join();
}

TEST(NearestFirst, PutsTheNodesCpusFirstButNoHardwareThreadBeforeACore) {
    // Two nodes of two cores of two hardware threads, as usable_cpus() orders them.
    const std::vector<Cpu> cpus{{0, 0, 0}, {1, 0, 0}, {2, 1, 0}, {3, 1, 0},
                                {4, 0, 1}, {5, 0, 1}, {6, 1, 1}, {7, 1, 1}};
    EXPECT_EQ(numbers(nearest_first(cpus, 1)), (std::vector<unsigned int>{2, 3, 0, 1, 6, 7, 4, 5}));
    EXPECT_EQ(numbers(nearest_first(cpus, 0)), numbers(cpus));
    EXPECT_EQ(numbers(nearest_first(cpus, 9)), numbers(cpus));
}

TEST(NodeOfMemory, IsOneOfTheNodesThatTheKernelLists) {
    const std::string touched(8192, 'x');
    const auto node = node_of_memory(touched.data());
    if (!node) {
        GTEST_SKIP() << "this system does not tell where memory lies";
    }
    EXPECT_TRUE(std::ifstream("/sys/devices/system/node/node" + std::to_string(*node) + "/cpulist"))
        << *node;
}

// Package and core as the kernel numbers them.
std::optional<std::pair<int, int>> core_of(unsigned int cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    std::pair<int, int> core;
    if (std::ifstream(folder + "physical_package_id") >> core.first &&
        std::ifstream(folder + "core_id") >> core.second) {
        return core;
    }
    return std::nullopt;
}

TEST(UsableCpus, BeginWithOneOfEachCore) {
    std::vector<std::pair<int, int>> cores;
    for (const Cpu& cpu : usable_cpus()) {
        const auto core = core_of(cpu.number);
        if (!core) {
            GTEST_SKIP() << "this system does not tell the cores of its CPUs";
        }
        cores.push_back(*core);
    }
    const std::set<std::pair<int, int>> distinct(cores.begin(), cores.end());
    const std::set<std::pair<int, int>> first(
        cores.begin(), cores.begin() + static_cast<std::ptrdiff_t>(distinct.size()));
    EXPECT_EQ(first, distinct);
}

std::vector<Cpu> eight_cpus_on_two_nodes() {
    std::vector<Cpu> cpus;
    for (unsigned int number : {0U, 2U, 4U, 6U, 1U, 3U, 5U, 7U}) {
        cpus.push_back({number, number / 4});
    }
    return cpus;
}

TEST(CpuList, HoldsNumbersAndRangesInTheOrderWritten) {
    const std::vector<Cpu> usable = eight_cpus_on_two_nodes();
    EXPECT_EQ(numbers(parse_cpu_list("0-3,6", usable)), (std::vector<unsigned int>{0, 1, 2, 3, 6}));
    EXPECT_EQ(numbers(parse_cpu_list("7,0", usable)), (std::vector<unsigned int>{7, 0}));
    EXPECT_EQ(numbers(parse_cpu_list("5", usable)), (std::vector<unsigned int>{5}));
    EXPECT_EQ(numbers(parse_cpu_list("3-3", usable)), (std::vector<unsigned int>{3}));
    EXPECT_EQ(parse_cpu_list("6", usable).front().node, 1U);
    EXPECT_EQ(parse_cpu_list("1", usable).front().node, 0U);
}

TEST(CpuList, RefusesOtherText) {
    const std::vector<Cpu> usable = eight_cpus_on_two_nodes();
    for (const char* text :
         {"", ",", "1,", ",1", "1,,2", "a", "1-", "-1", "-", "1-2-3", "3-1", "1 ", " 1", "1.5",
          "0x1", "+1", "4294967296", "99999999999999999999"}) {
        EXPECT_THROW(parse_cpu_list(text, usable), UsageError) << "'" << text << "'";
    }
}

TEST(CpuList, RefusesCpusThatAreNotUsableAndNamesThem) {
    const std::vector<Cpu> usable = eight_cpus_on_two_nodes();
    for (const char* text : {"8", "0-8", "7-4294967295"}) {
        EXPECT_THROW(parse_cpu_list(text, usable), UsageError) << text;
    }
    try {
        parse_cpu_list("6-9", usable);
        FAIL() << "CPU 8 is not usable";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("CPU 8 "), std::string::npos) << error.what();
    }
}

TEST(BindThisThread, RunsTheThreadThereAndNowhereElse) {
    for (const Cpu& cpu : usable_cpus()) {
        std::thread([cpu] {
            ASSERT_EQ(bind_this_thread(cpu.number), cpu.number);
            EXPECT_EQ(sched_getcpu(), static_cast<int>(cpu.number));
            const cpu_set_t mask = affinity();
            EXPECT_EQ(CPU_COUNT(&mask), 1);
            EXPECT_TRUE(CPU_ISSET(cpu.number, &mask));
        }).join();
    }
}

TEST(BindThisThread, AnswersNothingForACpuThatIsNotThere) {
    const cpu_set_t before = affinity();
    EXPECT_FALSE(bind_this_thread(CPU_SETSIZE));
    EXPECT_FALSE(bind_this_thread(0xFFFFFFFF));
    unsigned int absent = CPU_SETSIZE - 1;
    if (core_of(absent)) {
        GTEST_SKIP() << "this machine has " << CPU_SETSIZE << " CPUs";
    }
    EXPECT_FALSE(bind_this_thread(absent));
    const cpu_set_t after = affinity();
    EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

}  // namespace
}  // namespace echelle
