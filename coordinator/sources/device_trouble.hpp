// What a capture card's driver means when open() or read() fails, as found in the drivers'
// sources: XDMA (dma_ip_drivers), LitePCIe; other character devices follow the same customs.
// docs/capture-cards.md has the same table. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>

namespace echelle {

// The causes by which troubles are counted.
enum class DeviceTrouble : uint32_t {
    busy,              // another program has the channel
    misaligned,        // the driver wants another length, address or position
    time_out,          // the driver waited for data in vain
    engine_error,      // the DMA engine stopped
    device_lost,       // the card is gone: no such device
    all_ones,          // the card is gone: its reads give nothing but ones
    impossible_count,  // more bytes than were asked for
    no_answer,         // a read that did not return until it was interrupted
    ended,             // a FIFO's writer left
    not_permitted,     // file permissions, a cgroup's device list
    other,             // any other errno
};
inline constexpr size_t device_troubles = 11;
const char* name_of(DeviceTrouble trouble);

// XDMA's older drivers let the kernel's own ERESTARTSYS out when their wait timed out.
inline constexpr int errno_restartsys = 512;

DeviceTrouble trouble_of_errno(int error);
// False where the driver is well and only had nothing to give: read again. Otherwise the device
// has to be opened anew.
bool needs_reopening(DeviceTrouble trouble);
// What happened and what to do, in one line, with the errno where there is one (0: none).
std::string explain(DeviceTrouble trouble, int error);

}  // namespace echelle
