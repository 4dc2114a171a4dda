#include "common/wakeup.hpp"

#include <string>

#include "common/error.hpp"

namespace echelle {

std::string_view name_of(NotifyKind kind) {
    return kind == NotifyKind::zmq ? "zmq" : "futex";
}

NotifyKind parse_notify_kind(std::string_view text) {
    if (text == "zmq") {
        return NotifyKind::zmq;
    }
    if (text == "futex") {
        return NotifyKind::futex;
    }
    throw UsageError("--notify '" + std::string(text) + "' is not known: give zmq or futex");
}

std::unique_ptr<Wakeups> make_wakeups(NotifyKind kind, Ledger& ledger,
                                      const WakeupEndpoints& endpoints, int real_time_priority) {
    return kind == NotifyKind::zmq ? make_zmq_wakeups(endpoints, real_time_priority)
                                   : make_futex_wakeups(ledger);
}

}  // namespace echelle
