// digital_rf:PATH?channel=&samples=   (also drf:)
//
// A channel of a Digital RF 2 recording: a folder with drf_properties.h5 and folders of rf@*.h5, or
// the folder above it. docs/sources.md says what a gap is.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Throws UsageError.
std::unique_ptr<Source> open_digital_rf_source(SourceUri uri, const StreamOptions& options);

// Whether a folder is one, or holds some.
bool looks_like_digital_rf(const std::string& folder);

}  // namespace echelle
