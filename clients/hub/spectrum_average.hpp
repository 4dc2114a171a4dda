// The average of spectra of one channel that follow each other, as one spectrum with a trailer that
// says what it is. docs/hub.md states every field.
//
// Values are averaged in linear power, each spectrum weighted by its segments, in double precision;
// of spectra made with average mode max, the largest of each bin. Any thread, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "clients/hub/message_check.hpp"
#include "common/packet.hpp"

namespace echelle {

class SpectrumAverage {
  public:
    // False, and nothing is added: it does not follow what is in here (another run), or was made
    // with other parameters.
    bool add(const CheckedSpectrum& spectrum);

    // How many spectra are in it.
    uint32_t spectra() const { return spectra_; }
    // What `fft_size` values take here.
    static size_t bytes_of(uint32_t fft_size) { return sizeof(double) * size_t{fft_size}; }
    size_t bytes() const { return sums_.size() * sizeof(double); }

    // The average as a sealed 1.1 packet, with this sequence number; there is one spectrum at
    // least. Empty afterwards.
    std::vector<std::byte> take(uint64_t sequence);
    void clear();

  private:
    void begin(const CheckedSpectrum& spectrum);
    bool follows(const CheckedSpectrum& spectrum) const;
    void add_values(const CheckedSpectrum& spectrum);

    uint32_t spectra_ = 0;
    PacketHeader header_;    // of the first
    PacketTrailer trailer_;  // of the first, with the counts of all
    uint64_t last_sequence_ = 0;
    std::vector<double> sums_;  // weighted; or the largest
    double weight_ = 0;
    double mean_sum_ = 0;
    double square_sum_ = 0;
};

}  // namespace echelle
