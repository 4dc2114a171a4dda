// The header of a PSRDADA file: lines of KEY value # comment to a checked struct. Touches no file.
//
// As psrdada's ascii_header reads them and DSPSR and baseband write them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/rational.hpp"
#include "coordinator/sources/sample_file.hpp"

namespace echelle {

// Usual is 4096; beyond this no header is believed.
inline constexpr uint64_t most_dada_header_bytes = uint64_t{1} << 20;

struct DadaHeader {
    uint64_t header_bytes = 4096;  // HDR_SIZE
    uint32_t channels = 1;         // NCHAN
    uint32_t polarisations = 1;    // NPOL
    bool is_complex = false;       // NDIM 2
    ValueCoding coding = ValueCoding::int8;
    std::optional<Rational> rate;           // 1e6 / TSAMP
    std::optional<std::string> start_text;  // UTC_START, as written
    std::optional<int64_t> start_ns;        // as Unix time, PICOSECONDS included
    uint64_t offset_bytes = 0;              // OBS_OFFSET
    uint64_t overlap_bytes = 0;             // OBS_OVERLAP
    std::optional<uint64_t> file_bytes;     // FILE_SIZE: of data, as requested

    // Bytes of one sample of all channels and polarisations.
    uint64_t sample_bytes() const {
        return uint64_t{channels} * polarisations * (is_complex ? 2 : 1) * bytes_of(coding);
    }
};

// HDR_SIZE of what the first bytes of a file hold; 4096 when they don't say. Throws UsageError.
uint64_t dada_header_bytes(std::string_view bytes, const std::string& what);

// `bytes` are the whole header. Throws UsageError naming `what`, the key and its value.
DadaHeader parse_dada_header(std::string_view bytes, const std::string& what);

// Whether bytes look like such a header: lines of text, one of them HDR_SIZE or HDR_VERSION.
bool looks_like_dada(std::string_view bytes);

}  // namespace echelle
