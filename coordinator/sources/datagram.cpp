#include "coordinator/sources/datagram.hpp"

namespace echelle {

std::string_view name_of(DatagramFault fault) {
    constexpr std::array<std::string_view, datagram_faults> names = {
        "none",         "too_short",    "unknown_header", "size_mismatch", "partial_sample",
        "missing_item", "beyond_heap",  "changed_size",   "off_step",      "no_time",
        "not_samples",  "other_stream", "before_start"};
    return names[static_cast<size_t>(fault)];
}

}  // namespace echelle
