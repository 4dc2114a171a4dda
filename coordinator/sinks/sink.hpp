// Where finished spectra go. Called by the collector thread alone, in time order and within one
// time by channel. A sink that fails throws RunError, which ends the run.
#pragma once

#include <cstddef>
#include <span>

namespace echelle {

class SpectrumSink {
  public:
    virtual ~SpectrumSink() = default;
    // One sealed 1.1 packet; the bytes are valid during the call.
    virtual void write(std::span<const std::byte> packet) = 0;
    // The stream has ended and every spectrum was written.
    virtual void finish() = 0;
};

}  // namespace echelle
