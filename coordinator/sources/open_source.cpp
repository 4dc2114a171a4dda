#include <array>
#include <string_view>
#include <utility>

#include <sys/stat.h>

#include "common/error.hpp"
#include "coordinator/sources/blue_source.hpp"
#include "coordinator/sources/card_source.hpp"
#include "coordinator/sources/dada_source.hpp"
#include "coordinator/sources/detect.hpp"
#include "coordinator/sources/digital_rf_source.hpp"
#include "coordinator/sources/guppi_source.hpp"
#include "coordinator/sources/iio_source.hpp"
#include "coordinator/sources/pcap_source.hpp"
#include "coordinator/sources/raw_source.hpp"
#include "coordinator/sources/ring_source.hpp"
#include "coordinator/sources/sigmf_source.hpp"
#include "coordinator/sources/sim_source.hpp"
#include "coordinator/sources/source.hpp"
#include "coordinator/sources/stream_options.hpp"
#include "coordinator/sources/udp_source.hpp"
#include "coordinator/sources/wav_source.hpp"

namespace echelle {
namespace {

struct Scheme {
    const char* name;
    std::unique_ptr<Source> (*open)(SourceUri uri, const StreamOptions& options);
};

constexpr std::array schemes = {
    Scheme{"sim", open_sim_source},        Scheme{"ring", open_ring_source},
    Scheme{"raw", open_raw_source},        Scheme{"sigmf", open_sigmf_source},
    Scheme{"wav", open_wav_source},        Scheme{"dada", open_dada_source},
    Scheme{"guppi", open_guppi_source},    Scheme{"digital_rf", open_digital_rf_source},
    Scheme{"drf", open_digital_rf_source}, Scheme{"blue", open_blue_source},
    Scheme{"udp", open_udp_source},        Scheme{"pcap", open_pcap_source},
    Scheme{"xdma", open_card_source},      Scheme{"iio", open_iio_source},
};

const Scheme* find_scheme(std::string_view name) {
    for (const Scheme& scheme : schemes) {
        if (name == scheme.name) {
            return &scheme;
        }
    }
    return nullptr;
}

bool names_a_file(const std::string& text) {
    struct stat status {};
    const std::string path = SourceUri::parse("path:" + text).path();
    return stat(path.c_str(), &status) == 0;
}

// With the scheme in front that the user left out. A name like 2013-07-02-01:37:40.dada begins like
// a scheme without being one; a known scheme stays one even where there is such a file.
std::string with_scheme(const std::string& text) {
    const size_t colon = text.find(':');
    const bool has_colon = colon != std::string::npos;
    if (has_colon && find_scheme(std::string_view(text).substr(0, colon)) != nullptr) {
        return text;
    }
    const bool is_pattern = !has_colon && text.find_first_of("*[") != std::string::npos;
    const bool is_path =
        text.find('\0') == std::string::npos && !text.empty() &&
        (text.front() == '/' || text.front() == '.' || is_pattern || names_a_file(text));
    return is_path ? detect_scheme(SourceUri::parse("path:" + text).path()) + ":" + text : text;
}

}  // namespace

std::unique_ptr<Source> open_source(const std::string& text, const StreamOptions& options) {
    const std::string complete = with_scheme(text);
    if (!complete.empty() && complete.find(':') == std::string::npos) {
        throw UsageError("source '" + text +
                         "' is no file here, and does not begin with a scheme: write it like "
                         "raw:capture.bin?channels=2&rate=48000");
    }
    SourceUri uri = SourceUri::parse(complete);
    if (const Scheme* scheme = find_scheme(uri.scheme())) {
        std::unique_ptr<Source> source = scheme->open(uri, options);
        // What the URI's keys say as well, whichever of the two the source went by.
        refuse_contradictions(options, source->stream(), FrameSize::fixed,
                              "source '" + uri.text() + "'");
        return source;
    }
    std::string known;
    for (const Scheme& scheme : schemes) {
        known += (known.empty() ? "" : ", ") + std::string(scheme.name) + ":";
    }
    throw UsageError("source '" + uri.text() + "' has the unknown scheme '" + uri.scheme() +
                     "', and there is no such file: the known ones are " + known);
}

}  // namespace echelle
