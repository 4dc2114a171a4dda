// FFTW's wisdom on disk: what planning found, so that the next start need not search again. A
// cache: whatever is wrong with it costs time, never a result.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace echelle {

// $XDG_CACHE_HOME/echelle, else $HOME/.cache/echelle; nothing when neither is an absolute path.
std::optional<std::string> wisdom_directory();

// The file for plans of one size. FFTW itself refuses wisdom of another version of FFTW; wisdom
// found on another kind of CPU would be taken and be slow, so the SIMD target is in the name.
std::string wisdom_file_name(uint32_t nperseg, const std::string& kinds, const std::string& effort);

// The file's text; nothing when it cannot be read or is absurdly large.
std::optional<std::string> read_wisdom(const std::string& path);

// Replaces the file as a whole (a new file, then rename), making the directories above it. Several
// processes may do so at once: the last one's file remains. False when it cannot be done.
bool write_wisdom(const std::string& path, const std::string& text);

}  // namespace echelle
