// A SigMF collection: JSON text to the list of its recordings. Touches no file.
//
// SigMF 1.2, "SigMF Collection format": an object "collection" with core:streams.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace echelle {

struct SigmfStream {
    std::string name;                 // of the recording, without folder and ending
    std::optional<std::string> hash;  // SHA-512 of its metadata file, in hexadecimal digits
};

// At least one. Throws UsageError naming `what`, the field, the value seen and what was expected.
std::vector<SigmfStream> parse_sigmf_collection(std::string_view json, const std::string& what);

}  // namespace echelle
