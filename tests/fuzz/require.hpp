// What the fuzzers share: an assertion that stays in every build, and one-line messages.
#pragma once

#include <cstdlib>
#include <cstring>

#include "common/error.hpp"

namespace echelle {

inline void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

// Runs `parse`, which may refuse its bytes with a UsageError of one line and nothing else.
template <typename Parse>
void refused_in_one_line(Parse parse) {
    try {
        parse();
    } catch (const UsageError& error) {
        require(std::strchr(error.what(), '\n') == nullptr && std::strlen(error.what()) < 2000);
    }
}

}  // namespace echelle
