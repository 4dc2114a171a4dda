// What echelle-info says of a recording of samples.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace echelle {

// `source` is a path or a URI as --source takes it. Throws UsageError when it is no recording or
// cannot be read.
nlohmann::ordered_json recording_info(const std::string& source);

}  // namespace echelle
