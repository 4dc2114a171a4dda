#include "coordinator/sources/detect.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <sys/stat.h>

#include "common/error.hpp"
#include "coordinator/sources/blue_header.hpp"
#include "coordinator/sources/dada_header.hpp"
#include "coordinator/sources/digital_rf_source.hpp"
#include "coordinator/sources/guppi_header.hpp"
#include "coordinator/sources/pcap_file.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/tar_members.hpp"

namespace echelle {
namespace {

using std::literals::string_view_literals::operator""sv;

bool is_sound_file(std::string_view bytes) {
    constexpr std::array starts = {"RIFF"sv, "RF64"sv, "BW64"sv, "riff\x2E\x91\xCF\x11"sv,
                                   "FORM"sv, "caff"sv, ".snd"sv, "fLaC"sv};
    return std::any_of(starts.begin(), starts.end(),
                       [bytes](std::string_view start) { return bytes.starts_with(start); });
}

// JSON text that begins like SigMF metadata: an object of "global", "captures", "annotations" or
// "collection".
bool is_sigmf(std::string_view bytes) {
    constexpr std::string_view blanks = " \t\r\n";
    const size_t brace = bytes.find_first_not_of(blanks);
    if (brace == std::string_view::npos || bytes[brace] != '{') {
        return false;
    }
    bytes.remove_prefix(brace + 1);
    bytes.remove_prefix(std::min(bytes.find_first_not_of(blanks), bytes.size()));
    constexpr std::array keys = {"\"global\""sv, "\"captures\""sv, "\"annotations\""sv,
                                 "\"collection\""sv};
    return std::any_of(keys.begin(), keys.end(),
                       [bytes](std::string_view key) { return bytes.starts_with(key); });
}

// The data file of a SigMF recording says nothing by itself; its metadata stands beside it.
bool has_sigmf_metadata(const std::string& path) {
    constexpr std::string_view ending = ".sigmf-data";
    struct stat status {};
    return path.ends_with(ending) &&
           stat((path.substr(0, path.size() - ending.size()) + ".sigmf-meta").c_str(), &status) ==
               0;
}

std::string scheme_of(std::string_view bytes) {
    if (is_sound_file(bytes)) {
        return "wav";
    }
    if (looks_like_blue(bytes)) {
        return "blue";
    }
    if (looks_like_tar(bytes) || is_sigmf(bytes)) {
        return "sigmf";
    }
    if (looks_like_guppi(bytes)) {
        return "guppi";
    }
    if (looks_like_dada(bytes)) {
        return "dada";
    }
    if (looks_like_pcap(bytes)) {
        return "pcap";
    }
    return {};
}

std::string what_it_is_instead(std::string_view bytes) {
    if (bytes.starts_with("\x89HDF\r\n\x1A\n"sv)) {
        return "is an HDF5 file: of a Digital RF recording name the channel's folder";
    }
    if (bytes.starts_with("\x1F\x8B"sv) || bytes.starts_with("\xFD\x37zXZ"sv) ||
        bytes.starts_with("PK\x03\x04"sv) || bytes.starts_with("\x28\xB5\x2F\xFD"sv)) {
        return "is compressed: unpack it first";
    }
    if (bytes.empty()) {
        return "is empty: give a file with data";
    }
    return "is no recording of a known kind (WAV, SigMF, PSRDADA, GUPPI raw, Digital RF, BLUE, "
           "pcap): if it holds samples without a header, name it like "
           "raw:FILE?channels=2&rate=48000";
}

}  // namespace

std::string detect_scheme(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
        if (looks_like_digital_rf(path)) {
            return "digital_rf";
        }
        throw UsageError("'" + path +
                         "' is a folder without a Digital RF recording (drf_properties.h5): name a "
                         "file");
    }
    constexpr size_t enough = 4096;
    const std::string first = recording_files(path).front();
    const std::string bytes = bytes_of_file(RegularFile(first), 0, enough);
    const std::string scheme = has_sigmf_metadata(first) ? "sigmf" : scheme_of(bytes);
    if (scheme.empty()) {
        throw UsageError("'" + path + "' " + what_it_is_instead(bytes));
    }
    return scheme;
}

}  // namespace echelle
