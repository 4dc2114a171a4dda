#include "common/fault_point.hpp"

#ifdef ECHELLE_FAULT_POINTS

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

namespace echelle {
namespace {

struct Fault {
    std::string point;
    std::string action;
    unsigned long count = 1;
    unsigned long poison_block = ~0UL;
};

unsigned long number_of(std::string_view text) {
    unsigned long value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
}

Fault read_fault() {
    Fault fault;
    const char* text = std::getenv("ECHELLE_FAULT");  // NOLINT(concurrency-mt-unsafe)
    if (text == nullptr) {
        return fault;
    }
    const std::string_view all = text;
    const size_t equals = all.find('=');
    fault.point = all.substr(0, equals);
    const std::string_view rest = equals == std::string_view::npos ? "" : all.substr(equals + 1);
    if (fault.point == "worker.block") {
        fault.poison_block = number_of(rest);
        return fault;
    }
    const size_t at = rest.find('@');
    fault.action = rest.substr(0, at);
    if (at != std::string_view::npos) {
        fault.count = number_of(rest.substr(at + 1));
    }
    return fault;
}

const Fault& fault() {
    static const Fault value = read_fault();
    return value;
}

std::atomic<unsigned int> incarnation_now{1};
std::atomic<unsigned long> passed{0};

}  // namespace

void set_fault_incarnation(unsigned int incarnation) {
    incarnation_now = incarnation;
    passed = 0;
}

void pass_fault_point(const char* name) {
    if (fault().point != name || ++passed != fault().count) {
        return;
    }
    if (fault().action != "kill-always" && incarnation_now != 1) {
        return;
    }
    kill(getpid(), fault().action == "stop" ? SIGSTOP : SIGKILL);
}

void pass_block_fault_point(unsigned long block) {
    if (block == fault().poison_block) {
        // As a fault in the computation would end it.
        std::signal(SIGSEGV, SIG_DFL);
        kill(getpid(), SIGSEGV);
    }
}

}  // namespace echelle

#endif
