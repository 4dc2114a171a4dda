#include "coordinator/sources/device_trouble.hpp"

#include <cerrno>

#include "common/error.hpp"

namespace echelle {
namespace {

std::string what_happened(DeviceTrouble trouble) {
    switch (trouble) {
        case DeviceTrouble::busy:
            return "another program has this DMA channel open: stop it, one reader is all that "
                   "the driver allows";
        case DeviceTrouble::misaligned:
            return "the driver refuses this transfer's length or address: it wants multiples of "
                   "the bus width, so make the frame a multiple of 64 bytes on the wire";
        case DeviceTrouble::time_out:
            return "the driver waited for data in vain: does the gateware send frames, each with "
                   "TLAST?";
        case DeviceTrouble::engine_error:
            return "the DMA engine stopped with an error: dmesg says which; check the PCIe link "
                   "and the gateware's clocks and resets";
        case DeviceTrouble::device_lost:
            return "the card is gone (power, reset, a fallen PCIe link, reconfigured): rescan the "
                   "bus or load its driver again";
        case DeviceTrouble::all_ones:
            return "reads give nothing but ones, as from a card that has fallen off the bus: "
                   "reset it, rescan the bus or load its driver again";
        case DeviceTrouble::impossible_count:
            return "the driver reports more bytes than were asked for: it is faulty, nothing of "
                   "this read was used; take a newer driver";
        case DeviceTrouble::no_answer:
            return "a read did not return: no data come, or the driver hangs (dmesg)";
        case DeviceTrouble::ended:
            return "the writer has closed it";
        case DeviceTrouble::not_permitted:
            return "this user may not read it: check the node's owner and mode (udev), and a "
                   "container's device list";
        case DeviceTrouble::other:
            break;
    }
    return "see dmesg for what the driver says";
}

}  // namespace

const char* name_of(DeviceTrouble trouble) {
    switch (trouble) {
        case DeviceTrouble::busy:
            return "busy";
        case DeviceTrouble::misaligned:
            return "misaligned";
        case DeviceTrouble::time_out:
            return "time_out";
        case DeviceTrouble::engine_error:
            return "engine_error";
        case DeviceTrouble::device_lost:
            return "device_lost";
        case DeviceTrouble::all_ones:
            return "all_ones";
        case DeviceTrouble::impossible_count:
            return "impossible_count";
        case DeviceTrouble::no_answer:
            return "no_answer";
        case DeviceTrouble::ended:
            return "ended";
        case DeviceTrouble::not_permitted:
            return "not_permitted";
        case DeviceTrouble::other:
            break;
    }
    return "other";
}

DeviceTrouble trouble_of_errno(int error) {
    switch (error) {
        case EBUSY:
            return DeviceTrouble::busy;
        case EINVAL:
        case EFAULT:
            return DeviceTrouble::misaligned;
        case ETIMEDOUT:
        case ETIME:
        case errno_restartsys:
            return DeviceTrouble::time_out;
        case EIO:
        case EREMOTEIO:
        case EPROTO:
        case EOVERFLOW:
            return DeviceTrouble::engine_error;
        case ENODEV:
        case ENXIO:
        case ENOENT:
        case ESHUTDOWN:
        case ENOTCONN:
        case ECONNABORTED:
            return DeviceTrouble::device_lost;
        case EPERM:
        case EACCES:
            return DeviceTrouble::not_permitted;
        default:
            return DeviceTrouble::other;
    }
}

bool needs_reopening(DeviceTrouble trouble) {
    return trouble != DeviceTrouble::time_out;
}

std::string explain(DeviceTrouble trouble, int error) {
    std::string text;
    if (error == errno_restartsys) {
        text = "errno 512 (the driver's wait timed out): ";
    } else if (error != 0) {
        text = errno_text(error) + ": ";
    }
    return text + what_happened(trouble);
}

}  // namespace echelle
