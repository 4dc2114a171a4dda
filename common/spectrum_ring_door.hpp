// How a reader gets at the ring of spectra: a Unix socket in the instance's directory hands the
// region's descriptor (open for reading only) to whoever connects. docs/feed.md states the message.
//
// The memory has no name, so that nothing is left behind whatever kills the coordinator, and needs
// no /proc of the same namespace.
#pragma once

#include <functional>
#include <string>

#include "common/file_descriptor.hpp"
#include "common/spectrum_ring.hpp"

namespace echelle {

// The giving end; one thread. Never waits.
class SpectrumRingDoor {
  public:
    // Listens on `path`, replacing a socket that is there. Throws UsageError.
    explicit SpectrumRingDoor(const std::string& path);

    // Readable when somebody has connected.
    int events() const { return listener_.get(); }
    // Gives everybody who has connected the ring that `ring` answers (null: there is none).
    void serve(const std::function<const SpectrumRingWriter*()>& ring);

  private:
    FileDescriptor listener_;
};

// The taking end: the ring of a running coordinator, mapped for reading. Movable; readers of it
// must not outlive it.
class AttachedSpectrumRing {
  public:
    // Throws UsageError when nobody gives a ring there (the message says why), or not within two
    // seconds.
    explicit AttachedSpectrumRing(const std::string& socket_path);
    AttachedSpectrumRing(AttachedSpectrumRing&& other) noexcept;
    AttachedSpectrumRing& operator=(AttachedSpectrumRing&& other) noexcept;
    ~AttachedSpectrumRing();

    std::span<const std::byte> region() const { return {data_, size_}; }

  private:
    const std::byte* data_ = nullptr;
    size_t size_ = 0;
};

}  // namespace echelle
