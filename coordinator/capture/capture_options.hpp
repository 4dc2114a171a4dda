// --capture DIR[?key=value&...]: where incoming frames are kept, and when a new file begins.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace echelle {

struct CaptureOptions {
    std::string directory;
    // A file ends before it would exceed either; one frame is written in any case.
    uint64_t most_file_bytes = uint64_t{1} << 40;
    std::optional<double> most_file_seconds;  // of the stream's time
    bool at_once = true;                      // false: waits for `echellectl capture`
    bool with_sha512 = true;

    // Throws UsageError naming the key, its value and what is possible.
    static CaptureOptions parse(const std::string& text);
};

// Makes the directory unless it is there. Throws UsageError when no file can be made in it.
void make_capture_directory(const std::string& directory);

}  // namespace echelle
