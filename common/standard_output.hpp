// Standard output of a program: what was written has arrived, or the program says that it has not.
// A full disk behind a redirection would go unnoticed otherwise. Any thread, one at a time.
#pragma once

#include <string>

namespace echelle {

// Writes the text and whatever stdio still holds for standard output. Throws RunError.
void write_standard_output(const std::string& text);

}  // namespace echelle
