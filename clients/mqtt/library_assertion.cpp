#include "clients/mqtt/library_assertion.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

thread_local std::jmp_buf* way_out = nullptr;
thread_local bool was_logging = false;

}  // namespace

// Everywhere else it does what the C library's does.
extern "C" [[noreturn]] void __assert_fail(const char* assertion, const char* file,
                                           unsigned int line,
                                           const char* function) noexcept(false) {
    if (way_out != nullptr) {
        was_logging = std::strcmp(function, "log__printf") == 0;
        std::longjmp(*way_out, 1);
    }
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    std::abort();
}

namespace echelle::mqtt {

Outcome survive_assertion(int (*function)(void*), void* argument, int& result) {
    std::jmp_buf here;
    if (setjmp(here) != 0) {
        way_out = nullptr;
        return was_logging ? Outcome::failed_while_logging : Outcome::failed_elsewhere;
    }
    way_out = &here;
    result = function(argument);
    way_out = nullptr;
    return Outcome::returned;
}

}  // namespace echelle::mqtt
