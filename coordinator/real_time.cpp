#include "coordinator/real_time.hpp"

#include <cerrno>
#include <thread>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

// The error, or 0. Processes that this thread starts (a new nursery) have the usual policy again.
int set_policy_of_this_thread(int priority) {
    sched_param parameters{};
    parameters.sched_priority = priority;
    return sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &parameters) == 0 ? 0 : errno;
}

}  // namespace

std::string why_no_real_time(int priority) {
    int error = 0;
    std::thread probe([&] { error = set_policy_of_this_thread(priority); });
    probe.join();
    return error == 0 ? "" : errno_text(error);
}

void make_this_thread_real_time(int priority) {
    ECHELLE_INVARIANT(set_policy_of_this_thread(priority) == 0);
}

std::string lock_memory() {
    return mlockall(MCL_CURRENT) == 0 ? "" : errno_text(errno);
}

}  // namespace echelle
