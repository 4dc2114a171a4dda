// A sound file, open through libsndfile. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <sndfile.h>

#include "coordinator/sources/sample_store.hpp"

namespace echelle {

class SoundFile {
  public:
    // Throws UsageError when libsndfile can't open it.
    explicit SoundFile(const std::string& path);

    const std::string& path() const { return path_; }
    uint32_t channels() const { return static_cast<uint32_t>(info_.channels); }
    uint64_t frames() const { return static_cast<uint64_t>(info_.frames); }
    int rate() const { return info_.samplerate; }
    int encoding() const { return info_.format & SF_FORMAT_SUBMASK; }
    std::string type_name() const;      // "WAV (Microsoft)"
    std::string encoding_name() const;  // "Signed 16 bit PCM"

    // All channels' values from that frame on, as int16: 8-bit ones in the high byte. Throws
    // RunError when there are fewer.
    void read(uint64_t first_frame, std::span<int16_t> values);

  private:
    struct Close {
        void operator()(SNDFILE* file) const { sf_close(file); }
    };

    std::string path_;
    SF_INFO info_{};
    std::unique_ptr<SNDFILE, Close> file_;
    uint64_t next_frame_ = 0;
};

// The frames of a sound file; a sample of the stream is a frame, or, complex, pairs of its
// channels.
class SoundStore : public SampleStore {
  public:
    SoundStore(SoundFile file, bool is_8_bit) : file_(std::move(file)), is_8_bit_(is_8_bit) {}
    void read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
              std::span<int16_t> frame) override;

  private:
    SoundFile file_;
    bool is_8_bit_ = false;
};

}  // namespace echelle
