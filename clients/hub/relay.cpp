#include "clients/hub/relay.hpp"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <unistd.h>

#include "common/clock.hpp"
#include "common/curve_keys.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr int most_messages_at_once = 64;  // then subscribers have their turn
constexpr int64_t figures_period_ns = 1'000'000'000;
constexpr int64_t longest_sleep_ns = 1'000'000'000;
constexpr int64_t patience_ns = 2'000'000'000;  // before the operator is told that nothing answers
constexpr size_t most_sequences = 3 * 65'536;

bool concerns(std::string_view prefix, std::string_view topic) {
    return topic.starts_with(prefix) || prefix.starts_with(topic);
}

bool is_of_a_hub(std::string_view topic) {
    return topic == "event/relay" || topic == "stat/relay";
}

std::span<const std::byte> bytes_of(const zmq::message_t& message) {
    return std::as_bytes(std::span(message.data<char>(), message.size()));
}

}  // namespace

Relay::Relay(const HubOptions& options, const Instance& instance, Say say)
    : options_(options),
      identity_{.name = instance.name(), .pid = getpid(), .started_ns = realtime_ns()},
      say_(std::move(say)),
      gate_(make_gate(context_, options, say_)),
      interest_(0, {}),
      feed_(context_, endpoints(instance),
            options.to.key.empty() ? CurveKeys{} : read_secret_keys(options.to.key),
            options.queue_messages, interest_),
      upstream_(context_, options),
      decimator_(options.rate_hz, options.decimation, books_,
                 [this](std::string_view topic, zmq::message_t payload) {
                     feed_.send(topic, std::move(payload));
                 }),
      began_ns_(monotonic_ns()) {}

std::optional<FeedGate> Relay::make_gate(zmq::context_t& context, const HubOptions& options,
                                         const Say& say) {
    std::optional<FeedGate> gate;
    if (!options.to.allow.empty()) {
        gate.emplace(context, options.to.allow, say);
    }
    return gate;
}

std::vector<std::string> Relay::endpoints(const Instance& instance) const {
    std::vector<std::string> all{instance.feed_endpoint()};
    all.insert(all.end(), options_.to.endpoints.begin(), options_.to.endpoints.end());
    return all;
}

void Relay::run(int stop) {
    bool stopped = false;
    while (!stopped && !(run_has_ended_ && options_.until_end)) {
        if (!look_at_everything()) {
            stopped = sleep(stop);
        } else {
            zmq::pollitem_t item{nullptr, stop, ZMQ_POLLIN, 0};
            stopped = zmq_poll(&item, 1, 0) > 0;
        }
    }
    decimator_.end_run();
    publish_figures();
}

bool Relay::look_at_everything() {
    const bool asked = gate_ && gate_->answer();
    const bool subscribers = handle_subscribers();
    upstream_.handle_changes([this](Upstream::Change change) { tell(change); });
    const bool messages = take_messages();
    const int64_t now_ns = monotonic_ns();
    decimator_.send_due(now_ns);
    if (now_ns - figures_at_ns_ >= figures_period_ns && interest_.wants(TextTopic::stat)) {
        figures_at_ns_ = now_ns;
        publish_figures();
    }
    say_if_nothing_answers();
    if (!messages) {
        end_if_gone();
    }
    return asked || subscribers || messages;
}

// Whether it is to stop.
bool Relay::sleep(int stop) {
    const int64_t now_ns = monotonic_ns();
    int64_t until_ns = std::min(decimator_.next_due_ns(), now_ns + longest_sleep_ns);
    if (interest_.wants(TextTopic::stat)) {
        until_ns = std::min(until_ns, figures_at_ns_ + figures_period_ns);
    }
    // Rounded up: less than a millisecond before something is due would be to turn without rest.
    const auto wait_ms =
        static_cast<long>((std::max<int64_t>(0, until_ns - now_ns) + 999'999) / 1'000'000);
    std::array<zmq::pollitem_t, 6> items{
        zmq::pollitem_t{nullptr, stop, ZMQ_POLLIN, 0},
        zmq::pollitem_t{upstream_.socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{upstream_.monitor().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{feed_.socket().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{feed_.monitor().handle(), 0, ZMQ_POLLIN, 0},
        zmq::pollitem_t{gate_ ? gate_->socket().handle() : nullptr, -1, ZMQ_POLLIN, 0}};
    // An error (EINTR) is a wake-up like any other: everything is looked at anyway.
    static_cast<void>(zmq_poll(items.data(), gate_ ? 6 : 5, wait_ms));
    return (items[0].revents & ZMQ_POLLIN) != 0;
}

bool Relay::handle_subscribers() {
    return feed_.handle_subscribers(
        [](std::string_view) {},
        [this](std::string_view prefix) {
            if (concerns(prefix, "hello/") && !hello_.empty()) {
                feed_.send("hello/", zmq::message_t(hello_.data(), hello_.size()));
            }
        });
}

// ---- what comes from upstream

bool Relay::take_messages() {
    std::vector<zmq::message_t> parts;
    int taken = 0;
    while (taken < most_messages_at_once && upstream_.receive(parts)) {
        ++taken;
        ++books_.received;
        take(parts);
    }
    return taken > 0;
}

void Relay::take(std::vector<zmq::message_t>& parts) {
    if (parts.size() != 2) {
        books_.count(Invalid::parts);
        return;
    }
    const std::string_view topic = parts[0].to_string_view();
    const Checked checked = check_message(topic, bytes_of(parts[1]));
    if (const auto* cause = std::get_if<Invalid>(&checked)) {
        books_.count(*cause);
    } else if (const auto* spectrum = std::get_if<CheckedSpectrum>(&checked)) {
        take_spectrum(topic, *spectrum, std::move(parts[1]));
    } else {
        take_text(topic, std::get<CheckedText>(checked).kind, std::move(parts[1]));
    }
}

void Relay::take_spectrum(std::string_view topic, const CheckedSpectrum& spectrum,
                          zmq::message_t payload) {
    const uint64_t key =
        uint64_t{static_cast<uint8_t>(spectrum.topic)} << 32 | spectrum.header.channel_id;
    const uint64_t sequence = spectrum.trailer.sequence;
    const auto last = sequences_.find(key);
    if (last != sequences_.end()) {
        books_.upstream_missed += sequence > last->second ? sequence - last->second - 1 : 0;
        last->second = sequence;
    } else if (sequences_.size() < most_sequences) {
        sequences_.emplace(key, sequence);
    }
    decimator_.take(topic, spectrum, std::move(payload), monotonic_ns());
}

void Relay::take_text(std::string_view topic, CheckedText::Kind kind, zmq::message_t payload) {
    if (is_of_a_hub(topic)) {
        check_is_of_another(payload.to_string_view(), identity_, options_);
    }
    if (kind == CheckedText::Kind::hello) {
        take_hello(payload.to_string_view());
        return;
    }
    if (kind == CheckedText::Kind::end) {
        end_run();  // before the message that says that nothing more comes
    }
    ++books_.relayed;
    feed_.send(topic, std::move(payload));
}

void Relay::take_hello(std::string_view text) {
    if (text == upstream_hello_) {
        ++books_.repeated;  // somebody else has subscribed to it
        return;
    }
    const auto description = relayed_hello(text, identity_, options_);
    if (!description) {
        books_.count(Invalid::text);
        return;
    }
    decimator_.end_run();
    sequences_.clear();
    run_has_ended_ = false;
    upstream_hello_ = text;
    hello_ = *description;
    ++books_.relayed;
    feed_.send("hello/", zmq::message_t(hello_.data(), hello_.size()));
}

void Relay::end_run() {
    decimator_.end_run();
    run_has_ended_ = true;
}

// event/end passes a hub by whose queue at the coordinator is full, and one that was killed sends
// none; but its socket is removed. Subscribers here cannot see that: they are told.
void Relay::end_if_gone() {
    constexpr std::string_view scheme = "ipc://";
    if (hello_.empty() || run_has_ended_ || upstream_.is_connected() ||
        !options_.from_endpoint.starts_with("ipc:///") ||
        access(options_.from_endpoint.c_str() + scheme.size(), F_OK) == 0) {
        return;
    }
    end_run();
    const std::string end = end_event(identity_, options_);
    feed_.send("event/end", zmq::message_t(end.data(), end.size()));
}

void Relay::tell(Upstream::Change change) {
    std::string state = "connected";
    if (change == Upstream::Change::connected) {
        ++books_.upstream_connected;
        say_("reads " + options_.from_endpoint);
    } else if (change == Upstream::Change::lost) {
        state = "lost";
        ++books_.upstream_lost;
        say_("lost " + options_.from_endpoint + ": trying to come back");
    } else {
        state = "refused";
        // Tried again all the time: told once.
        if (books_.upstream_refused++ == 0) {
            say_(options_.from_endpoint +
                 " refuses this hub: is its key on the feed's list, and --from-server the feed's?");
        }
    }
    const std::string event = upstream_event(state, events_++, identity_, options_);
    feed_.send("event/relay", zmq::message_t(event.data(), event.size()));
}

void Relay::say_if_nothing_answers() {
    if (said_waiting_ || books_.upstream_connected > 0 ||
        monotonic_ns() - began_ns_ < patience_ns) {
        return;
    }
    said_waiting_ = true;
    say_("nothing answers at " + options_.from_endpoint +
         " yet: waiting for a coordinator to start there");
}

// ---- what the hub says of itself

HubFeedFigures Relay::feed_figures() const {
    return {.subscribers = interest_.connections(),
            .subscribers_most = feed_.most_connections(),
            .subscriptions = interest_.subscriptions(),
            .published = feed_.published(),
            .queue_full = feed_.queue_full(),
            .refused = feed_.refused() + (gate_ ? gate_->turned_away() : 0)};
}

void Relay::publish_figures() {
    const std::string text =
        figures(figures_++, identity_, books_, feed_figures(), upstream_.is_connected());
    feed_.send("stat/relay", zmq::message_t(text.data(), text.size()));
}

}  // namespace echelle
