// libzmq asks for the scheduling policy of every thread that it makes and sets the very same, and
// aborts the process where either is refused (libzmq#4563), as a seccomp filter may do. In a
// program that this file is linked into, libzmq's calls find these functions before the C
// library's: they do the same, but a policy that cannot be read is the usual one, and a refusal to
// change nothing is a success.
#include <cerrno>

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>

namespace {

// The C library's function of that name.
template <typename Function>
Function following(const char* name) {
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" int pthread_getschedparam(pthread_t thread, int* policy,
                                     sched_param* parameters) noexcept {
    static const auto get =
        following<int (*)(pthread_t, int*, sched_param*)>("pthread_getschedparam");
    if (get == nullptr || get(thread, policy, parameters) != 0) {
        *policy = SCHED_OTHER;
        *parameters = {};
    }
    return 0;
}

extern "C" int pthread_setschedparam(pthread_t thread, int policy,
                                     const sched_param* parameters) noexcept {
    static const auto set =
        following<int (*)(pthread_t, int, const sched_param*)>("pthread_setschedparam");
    const int error = set != nullptr ? set(thread, policy, parameters) : ENOSYS;
    int policy_now = 0;
    sched_param parameters_now{};
    pthread_getschedparam(thread, &policy_now, &parameters_now);
    const bool changes_nothing =
        policy_now == policy && parameters_now.sched_priority == parameters->sched_priority;
    return changes_nothing ? 0 : error;
}
