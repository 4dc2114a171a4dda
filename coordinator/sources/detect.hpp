// What kind of recording a file or folder is, by what is in it, never by its name alone.
#pragma once

#include <string>

namespace echelle {

// The scheme that reads it: "wav", "sigmf", "dada", ... Throws UsageError: nothing there, or
// nothing known.
std::string detect_scheme(const std::string& path);

}  // namespace echelle
