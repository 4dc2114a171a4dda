// The feed's thread: takes spectra out of the ring as any reader of it does, codes them as somebody
// wants them, and publishes them, beside events and figures. What it comes too late for it counts.
//
// Made, run and destroyed by that thread; the rest of the coordinator meets it in FeedExchange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "common/curve_keys.hpp"
#include "common/feed_gate.hpp"
#include "common/feed_socket.hpp"
#include "common/spectrum_ring.hpp"
#include "common/spectrum_ring_door.hpp"
#include "coordinator/sinks/feed_exchange.hpp"

namespace echelle {

struct FeedSetup {
    std::vector<std::string> endpoints;
    std::string ring_socket;  // path of the Unix socket that gives the ring away
    uint32_t channels = 0;
    size_t packet_bytes = 0;  // of the largest 1.1 packet
    CurveKeys keys;           // of the tcp endpoints; empty: they go without
    std::string allow_path;   // file with the keys of those who may subscribe
};

class FeedPublisher {
  public:
    // Binds. Throws UsageError.
    FeedPublisher(const FeedSetup& setup, FeedExchange& exchange);
    // Until the exchange says to stop; then what has come is published first, within half a second.
    void run();

  private:
    bool look_at_everything();
    void sleep();
    static std::optional<FeedGate> make_gate(zmq::context_t& context, const FeedSetup& setup);
    void end();

    void before_subscription(std::string_view prefix);
    void after_subscription(std::string_view prefix);
    // Made when first asked for; null when there is no memory.
    const SpectrumRingWriter* ring();

    void announce_ring();
    bool publish_spectra();
    void publish(const SpectrumRingReader::Entry& entry);
    bool publish_texts();
    void publish_marks(bool at_the_end);
    void keep_books();

    FeedSetup setup_;
    FeedExchange& exchange_;
    zmq::context_t context_{1};
    std::optional<FeedGate> gate_;  // where there are keys
    FeedSocket socket_;
    SpectrumRingDoor door_;
    SpectrumRingWriter* ring_ = nullptr;  // the exchange's, once somebody wants spectra
    bool ring_failed_ = false;
    std::optional<SpectrumRingReader> reader_;  // while somebody wants packets in messages
    uint64_t missed_before_ = 0;                // by readers before this one
    uint64_t announced_ = 0;                    // the head last told
    std::string hello_;
    FeedEventGatherer gaps_;
    FeedEventGatherer over_ranges_;
};

}  // namespace echelle
