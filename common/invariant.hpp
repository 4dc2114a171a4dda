// Broken invariants stop the process loudly: a ledger or ring that contradicts itself must not be
// worked on. Never used for bad input; that is common/error.hpp.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace echelle {

[[noreturn]] inline void broken_invariant(const char* condition, const char* file, int line) {
    std::fprintf(stderr, "echelle: broken invariant at %s:%d: %s\n", file, line, condition);
    std::abort();
}

}  // namespace echelle

#define ECHELLE_INVARIANT(condition)    \
    ((condition) ? static_cast<void>(0) \
                 : ::echelle::broken_invariant(#condition, __FILE__, __LINE__))
