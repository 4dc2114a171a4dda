#include "common/standard_output.hpp"

#include <cstdio>

#include "common/error.hpp"

namespace echelle {

void write_standard_output(const std::string& text) {
    errno = 0;
    const bool is_written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
    if (std::fflush(stdout) != 0 || !is_written) {
        throw RunError("standard output cannot be written: " + errno_text() +
                       "; look at where it is redirected to");
    }
}

}  // namespace echelle
