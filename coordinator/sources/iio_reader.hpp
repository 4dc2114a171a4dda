// Reads an IIO device in a thread of its own, since a refill may block for ever (libiio #1359) and
// a device that has timed out once may stay dead until it is opened again (libiio #981). Its owner
// waits no longer than it wants to, and lets go of a thread that does not come back.
//
// A reader opens the device once and ends with the first failure; whoever wants to go on makes
// another one. Owned and called by the source's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "coordinator/sources/iio_device.hpp"

namespace echelle {

enum class IioTrouble : uint32_t {
    timed_out,    // ETIMEDOUT: no samples for as long as libiio waits
    stuck,        // not even libiio's time-out came
    device_gone,  // ENODEV, ENXIO
    connection_lost,
    io_error,  // any other errno of a refill
    cannot_open,
    changed,  // opened again, it has other channels or formats
};
inline constexpr size_t iio_troubles = 7;
const char* name_of(IioTrouble trouble);

struct IioPart {
    std::vector<std::byte> bytes;  // in the order in which the kernel gives them
    int64_t arrived_ns = 0;        // monotonic, when the last of them was there
};

class IioReader {
  public:
    struct Plan {
        IioChoice choice;
        std::vector<IioElement> elements;  // what it must have
        size_t refill_scans = 0;
        size_t unpadded_scan_bytes = 0;
    };
    explicit IioReader(const Plan& plan);
    IioReader(const IioReader&) = delete;
    IioReader& operator=(const IioReader&) = delete;
    // Cancels what is under way. A thread that the kernel or the library keeps is left behind.
    ~IioReader();

    struct Failure {
        IioTrouble trouble = IioTrouble::io_error;
        std::string text;
    };
    // The next part, in order; nothing after the timeout, and nothing when all parts before the
    // failure have been given.
    std::optional<IioPart> next(int64_t timeout_ns);
    // Set when there is no further part.
    std::optional<Failure> failure() const;

    // Threads of this process that were left behind and have not come back.
    static uint32_t left_behind();

  private:
    struct Shared;
    static void run(const std::shared_ptr<Shared>& shared, const Plan& plan);

    std::shared_ptr<Shared> shared_;
    std::thread thread_;
};

}  // namespace echelle
