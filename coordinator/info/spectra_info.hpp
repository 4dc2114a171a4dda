// What echelle-info says of a recording of spectra (docs/packet.md).
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace echelle {

// Whether the file begins with a record that holds a SpectrumPacket's header. False for what is no
// regular file.
bool is_spectra_file(const std::string& path);

// Reads and checks every packet. Memory stays bounded by the longest record. Throws UsageError when
// there is none that can be read.
nlohmann::ordered_json spectra_info(const std::string& path);

}  // namespace echelle
