// An IIO device through libiio 0.24, of this machine or of an iiod behind a network: what it has,
// and its samples. Every call of libiio that may wait is made here. One thread, but for cancel().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "coordinator/sources/iio_scan.hpp"

struct iio_buffer;
struct iio_context;
struct iio_device;

namespace echelle {

struct IioChoice {
    std::string context;                // libiio's URI: "local:", "ip:192.168.2.1"
    std::string device;                 // its name or id; empty: the only one that has a buffer
    std::vector<std::string> channels;  // names or ids; empty: all that it can scan
    unsigned int timeout_ms = 1000;     // of libiio's own calls
};

class IioDevice {
  public:
    // Connects and finds device and channels. Throws UsageError naming what is missing and listing
    // what is there.
    explicit IioDevice(const IioChoice& choice);
    IioDevice(const IioDevice&) = delete;
    IioDevice& operator=(const IioDevice&) = delete;
    ~IioDevice();

    const std::string& name() const { return name_; }
    const std::vector<IioElement>& elements() const { return elements_; }
    // The attribute sampling_frequency of the device, or else of its channels, as written there.
    const std::optional<std::string>& sampling_frequency() const { return frequency_; }

    // Enables the channels and begins to sample: refills are of `scans`, as libiio counts them.
    // Throws RunError.
    void start(size_t scans, size_t unpadded_scan_bytes);
    // Waits for the next refill; its bytes are valid until the next call. Throws IioError.
    std::span<const std::byte> refill();
    // Any thread: a refill under way, and every later one, ends.
    void cancel();

  private:
    void find_device(const IioChoice& choice);
    void find_channels(const IioChoice& choice);
    void read_frequency();

    std::unique_ptr<iio_context, void (*)(iio_context*)> context_;
    iio_device* device_ = nullptr;
    std::string name_;
    std::vector<IioElement> elements_;
    std::optional<std::string> frequency_;
    std::mutex buffer_mutex_;  // guards buffer_ against cancel()
    iio_buffer* buffer_ = nullptr;
    bool cancelled_ = false;
};

// A refill that failed, with the errno that libiio gave.
class IioError : public std::runtime_error {
  public:
    explicit IioError(int error);
    int error() const { return error_; }

  private:
    int error_;
};

}  // namespace echelle
