#include "coordinator/sinks/feed_publisher.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "common/clock.hpp"
#include "common/coded_packet.hpp"
#include "common/error.hpp"
#include "common/packet.hpp"
#include "coordinator/log.hpp"

namespace echelle {
namespace {

constexpr size_t queue_bytes = size_t{8} << 20;  // of each subscriber, in 1.1 packets
constexpr size_t fewest_in_queue = 16;
constexpr size_t most_in_queue = 4096;
constexpr int most_spectra_at_once = 64;  // then subscribers and texts have their turn
constexpr long longest_sleep_ms = 1000;
constexpr long longest_sleep_with_marks_ms = 100;
constexpr int64_t patience_at_end_ns = 500'000'000;

int queue_messages(size_t packet_bytes) {
    return static_cast<int>(std::clamp(queue_bytes / packet_bytes, fewest_in_queue, most_in_queue));
}

bool concerns(std::string_view prefix, std::string_view topic) {
    return topic.starts_with(prefix) || prefix.starts_with(topic);
}

bool concerns_spectra(std::string_view prefix) {
    return std::any_of(spectrum_topic_names.begin(), spectrum_topic_names.end(),
                       [prefix](std::string_view name) { return concerns(prefix, name); });
}

bool concerns(std::string_view prefix, TextTopic topic) {
    return concerns(prefix, text_topic_names[static_cast<size_t>(topic)]);
}

}  // namespace

FeedPublisher::FeedPublisher(const FeedSetup& setup, FeedExchange& exchange)
    : setup_(setup),
      exchange_(exchange),
      gate_(make_gate(context_, setup)),
      socket_(context_, setup.endpoints, setup.keys, queue_messages(setup.packet_bytes),
              exchange.interest),
      door_(setup.ring_socket),
      gaps_(PacketFlag::gap_before),
      over_ranges_(PacketFlag::over_range) {}

std::optional<FeedGate> FeedPublisher::make_gate(zmq::context_t& context, const FeedSetup& setup) {
    std::optional<FeedGate> gate;
    if (!setup.allow_path.empty()) {
        gate.emplace(context, setup.allow_path, [](const std::string& why) { warn(why); });
    }
    return gate;
}

void FeedPublisher::run() {
    while (!exchange_.stopping.load(std::memory_order_acquire)) {
        if (!look_at_everything()) {
            keep_books();
            sleep();
        }
    }
    end();
}

bool FeedPublisher::look_at_everything() {
    const bool asked = gate_ && gate_->answer();
    const bool subscribers =
        socket_.handle_subscribers([this](std::string_view p) { before_subscription(p); },
                                   [this](std::string_view p) { after_subscription(p); });
    door_.serve([this] { return ring(); });
    const bool texts = publish_texts();
    publish_marks(false);
    announce_ring();
    const bool spectra = publish_spectra();
    if (spectra) {
        keep_books();
    }
    return asked || subscribers || texts || spectra;
}

void FeedPublisher::sleep() {
    exchange_.about_to_sleep();
    const bool has_spectra =
        ring_ != nullptr &&
        ((reader_ && ring_->head() > reader_->position()) || announced_ < ring_->head());
    if (!has_spectra && !exchange_.has_texts() &&
        !exchange_.stopping.load(std::memory_order_acquire)) {
        std::array<zmq::pollitem_t, 5> items{
            zmq::pollitem_t{socket_.socket().handle(), 0, ZMQ_POLLIN, 0},
            zmq::pollitem_t{socket_.monitor().handle(), 0, ZMQ_POLLIN, 0},
            zmq::pollitem_t{nullptr, door_.events(), ZMQ_POLLIN, 0},
            zmq::pollitem_t{nullptr, exchange_.bell(), ZMQ_POLLIN, 0},
            zmq::pollitem_t{gate_ ? gate_->socket().handle() : nullptr, -1, ZMQ_POLLIN, 0}};
        const bool marks = exchange_.interest.wants(TextTopic::event);
        // An error (EINTR) is a wake-up like any other: everything is looked at anyway.
        static_cast<void>(zmq_poll(items.data(), gate_ ? 5 : 4,
                                   marks ? longest_sleep_with_marks_ms : longest_sleep_ms));
    }
    exchange_.awake();
}

// ---- subscribers

void FeedPublisher::before_subscription(std::string_view prefix) {
    if (!concerns_spectra(prefix) && !concerns(prefix, TextTopic::ring)) {
        return;
    }
    const SpectrumRingWriter* made = ring();
    if (made != nullptr && concerns_spectra(prefix) && !reader_) {
        reader_.emplace(made->region());
    }
}

void FeedPublisher::after_subscription(std::string_view prefix) {
    if (concerns(prefix, TextTopic::hello) && !hello_.empty()) {
        socket_.send("hello/", zmq::message_t(hello_.data(), hello_.size()));
    }
}

const SpectrumRingWriter* FeedPublisher::ring() {
    if (ring_ == nullptr && !ring_failed_) {
        try {
            ring_ = &exchange_.make_ring(setup_.channels, setup_.packet_bytes);
        } catch (const std::exception& error) {
            ring_failed_ = true;
            warn(std::string("the feed publishes no spectra: ") + error.what());
        }
    }
    return ring_;
}

// ---- what is published

void FeedPublisher::announce_ring() {
    if (ring_ == nullptr) {
        return;
    }
    const uint64_t head = ring_->head();
    if (head != announced_ && exchange_.interest.wants(TextTopic::ring)) {
        socket_.send("ring/", zmq::message_t(&head, sizeof head));
    }
    announced_ = head;
}

bool FeedPublisher::publish_spectra() {
    if (!reader_) {
        return false;
    }
    if (!exchange_.interest.wants_spectra()) {
        missed_before_ += reader_->missed();
        reader_.reset();
        return false;
    }
    int taken = 0;
    while (taken < most_spectra_at_once) {
        const auto entry = reader_->next();
        if (!entry) {
            break;
        }
        ++taken;
        publish(*entry);
    }
    return taken > 0;
}

void FeedPublisher::publish(const SpectrumRingReader::Entry& entry) {
    const auto wants = [&](SpectrumTopic topic) {
        return exchange_.interest.wants(topic, entry.channel);
    };
    if (!wants(SpectrumTopic::psd) && !wants(SpectrumTopic::psd16) && !wants(SpectrumTopic::psd8)) {
        return;
    }
    zmq::message_t packet(entry.packet.data(), entry.packet.size());
    if (!reader_->confirm(entry)) {
        return;  // overwritten meanwhile: counted there
    }
    const auto bytes = std::as_bytes(std::span(packet.data<char>(), packet.size()));
    const auto code = [&](SpectrumTopic topic, PacketCoding coding) {
        const auto fft_size =
            static_cast<uint32_t>((packet.size() - packet_bytes_1_1(0)) / sizeof(float));
        zmq::message_t coded(coded_packet_bytes(coding, fft_size));
        encode_coded_packet(bytes, coding,
                            std::as_writable_bytes(std::span(coded.data<char>(), coded.size())));
        socket_.send(spectrum_topic(topic, entry.channel), std::move(coded));
    };
    if (wants(SpectrumTopic::psd16)) {
        code(SpectrumTopic::psd16, PacketCoding::float16);
    }
    if (wants(SpectrumTopic::psd8)) {
        code(SpectrumTopic::psd8, PacketCoding::decibel8);
    }
    if (wants(SpectrumTopic::psd)) {
        socket_.send(spectrum_topic(SpectrumTopic::psd, entry.channel), std::move(packet));
    }
}

bool FeedPublisher::publish_texts() {
    auto texts = exchange_.take_texts();
    for (auto& [topic, text] : texts) {
        if (topic == "hello/") {
            hello_ = text;
        }
        socket_.send(topic, zmq::message_t(text.data(), text.size()));
    }
    return !texts.empty();
}

void FeedPublisher::publish_marks(bool at_the_end) {
    while (const auto mark = exchange_.marks.pop()) {
        gaps_.add(*mark);
        over_ranges_.add(*mark);
    }
    const int64_t now_ns = monotonic_ns();
    if (const auto text = gaps_.take(now_ns, at_the_end)) {
        socket_.send("event/gap", zmq::message_t(text->data(), text->size()));
    }
    if (const auto text = over_ranges_.take(now_ns, at_the_end)) {
        socket_.send("event/over-range", zmq::message_t(text->data(), text->size()));
    }
}

void FeedPublisher::keep_books() {
    FeedBooks books;
    books.subscribers = exchange_.interest.connections();
    books.subscribers_most = socket_.most_connections();
    books.subscriptions = exchange_.interest.subscriptions();
    books.published = socket_.published();
    books.missed = missed_before_ + (reader_ ? reader_->missed() : 0);
    books.queue_full = socket_.queue_full();
    books.refused = socket_.refused() + (gate_ ? gate_->turned_away() : 0);
    exchange_.set_books(books);
}

// The stream has ended: what is in the ring, then the texts, of which the last is event/end.
void FeedPublisher::end() {
    const int64_t deadline_ns = monotonic_ns() + patience_at_end_ns;
    if (ring_ != nullptr) {
        ring_->end();
        announced_ = UINT64_MAX;  // told once more: a reader looks, and sees the end
    }
    announce_ring();
    while (publish_spectra() && monotonic_ns() < deadline_ns) {
    }
    if (reader_) {
        missed_before_ += ring_->head() - std::min(reader_->position(), ring_->head());
    }
    publish_marks(true);
    publish_texts();
    keep_books();
}

}  // namespace echelle
