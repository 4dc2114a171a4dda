// The hub's work: takes what a feed publishes, checks it, lets pass what its topics' turns allow,
// and publishes it to any number of subscribers under the feed's own rules
// (common/feed_socket.hpp).
//
// One thread makes, runs and destroys it; libzmq has one more for the sockets.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <zmq.hpp>

#include "clients/hub/decimator.hpp"
#include "clients/hub/hub_books.hpp"
#include "clients/hub/hub_options.hpp"
#include "clients/hub/hub_texts.hpp"
#include "clients/hub/upstream.hpp"
#include "common/feed_gate.hpp"
#include "common/feed_interest.hpp"
#include "common/feed_socket.hpp"
#include "common/instance.hpp"

namespace echelle {

class Relay {
  public:
    // A line for the operator.
    using Say = std::function<void(const std::string&)>;

    // Binds and connects. Throws UsageError when an endpoint, a key or a list cannot be used.
    Relay(const HubOptions& options, const Instance& instance, Say say);

    // Until `stop`, a descriptor, can be read; or the run that is read has ended, if so asked.
    // Sends what is held, then. Throws RunError when the hub reads itself.
    void run(int stop);

    const HubBooks& books() const { return books_; }
    const HubIdentity& identity() const { return identity_; }
    HubFeedFigures feed_figures() const;

  private:
    static std::optional<FeedGate> make_gate(zmq::context_t& context, const HubOptions& options,
                                             const Say& say);
    std::vector<std::string> endpoints(const Instance& instance) const;

    bool look_at_everything();
    bool sleep(int stop);
    bool handle_subscribers();
    bool take_messages();
    void take(std::vector<zmq::message_t>& parts);
    void take_spectrum(std::string_view topic, const CheckedSpectrum& spectrum,
                       zmq::message_t payload);
    void take_text(std::string_view topic, CheckedText::Kind kind, zmq::message_t payload);
    void take_hello(std::string_view text);
    void tell(Upstream::Change change);
    void end_if_gone();
    void end_run();
    void say_if_nothing_answers();
    void publish_figures();

    HubOptions options_;
    HubIdentity identity_;
    Say say_;
    HubBooks books_;
    zmq::context_t context_{1};
    std::optional<FeedGate> gate_;  // where there are keys
    FeedInterest interest_;
    FeedSocket feed_;
    Upstream upstream_;
    Decimator decimator_;

    std::string upstream_hello_;  // as it came
    std::string hello_;           // as it is passed on
    // The last sequence seen of each spectrum's topic and channel.
    std::unordered_map<uint64_t, uint64_t> sequences_;
    uint64_t events_ = 0;   // event/relay
    uint64_t figures_ = 0;  // stat/relay
    int64_t figures_at_ns_ = 0;
    int64_t began_ns_;
    bool said_waiting_ = false;
    bool run_has_ended_ = false;
};

}  // namespace echelle
