// `echellectl keys NAME`: makes a pair of CURVE keys for a tcp feed or a subscriber (docs/feed.md).
#pragma once

#include <string>

namespace echelle {

// Writes NAME.key and NAME.pub and says so on standard output. Throws UsageError and RunError.
void make_key_files(const std::string& name);

}  // namespace echelle
