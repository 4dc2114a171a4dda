// Warnings and notes to the operator: one line each on standard error. Any thread.
#pragma once

#include <string>

namespace echelle {

void warn(const std::string& message);

}  // namespace echelle
