#include "clients/mqtt/library_assertion.hpp"

#include <csetjmp>
#include <cstdio>
#include <cstdlib>

namespace {

thread_local std::jmp_buf* way_out = nullptr;

}  // namespace

// Everywhere else it does what the C library's does.
extern "C" [[noreturn]] void __assert_fail(const char* assertion, const char* file,
                                           unsigned int line,
                                           const char* function) noexcept(false) {
    if (way_out != nullptr) {
        std::longjmp(*way_out, 1);
    }
    std::fprintf(stderr, "%s:%u: %s: Assertion `%s' failed.\n", file, line, function, assertion);
    std::abort();
}

namespace echelle::mqtt {

bool survives_assertion(int (*function)(void*), void* argument, int& result) {
    std::jmp_buf here;
    if (setjmp(here) != 0) {
        way_out = nullptr;
        return false;
    }
    way_out = &here;
    result = function(argument);
    way_out = nullptr;
    return true;
}

}  // namespace echelle::mqtt
