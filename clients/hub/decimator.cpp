#include "clients/hub/decimator.hpp"

#include <span>
#include <vector>

#include "common/coded_packet.hpp"

namespace echelle {
namespace {

// Three encodings of as many channels as a coordinator takes at most.
constexpr size_t most_topics = 3 * 65'536;
constexpr size_t most_held_bytes = size_t{512} << 20;

zmq::message_t message_of(SpectrumTopic kind, std::span<const std::byte> packet) {
    if (kind == SpectrumTopic::psd) {
        return {packet.data(), packet.size()};
    }
    const auto coding =
        kind == SpectrumTopic::psd16 ? PacketCoding::float16 : PacketCoding::decibel8;
    const auto fft_size =
        static_cast<uint32_t>((packet.size() - packet_bytes_1_1(0)) / sizeof(float));
    zmq::message_t coded(coded_packet_bytes(coding, fft_size));
    encode_coded_packet(packet, coding,
                        std::as_writable_bytes(std::span(coded.data<char>(), coded.size())));
    return coded;
}

}  // namespace

Decimator::Decimator(double rate_hz, Decimation decimation, HubBooks& books, Send send)
    : period_ns_(rate_hz > 0 ? static_cast<int64_t>(1e9 / rate_hz) : 0),
      decimation_(decimation),
      books_(books),
      send_(std::move(send)) {}

void Decimator::take(std::string_view topic, const CheckedSpectrum& spectrum,
                     zmq::message_t payload, int64_t now_ns) {
    if (period_ns_ == 0) {
        ++books_.relayed;
        send_(topic, std::move(payload));
        return;
    }
    const std::string name(topic);
    auto found = topics_.find(name);
    if (found == topics_.end()) {
        if (topics_.size() >= most_topics) {
            books_.count(Dropped::no_room, 1);
            return;
        }
        found = topics_.try_emplace(name).first;
        found->second.kind = spectrum.topic;
    }
    if (decimation_ == Decimation::latest) {
        take_latest(*found, std::move(payload), now_ns);
    } else {
        take_for_average(*found, spectrum, now_ns);
    }
}

void Decimator::hold_until(Topics::value_type& entry, int64_t due_ns) {
    entry.second.due_ns = due_ns;
    due_.emplace(due_ns, &entry);
}

void Decimator::take_latest(Topics::value_type& entry, zmq::message_t payload, int64_t now_ns) {
    Topic& topic = entry.second;
    const bool holds = topic.due_ns != never;
    if (!holds && now_ns >= topic.next_ns) {
        topic.next_ns = now_ns + period_ns_;
        ++books_.relayed;
        send_(entry.first, std::move(payload));
        return;
    }
    const size_t freed = holds ? topic.held.size() : 0;
    if (held_bytes_ - freed + payload.size() > most_held_bytes) {
        books_.count(Dropped::no_room, 1);
        return;
    }
    held_bytes_ = held_bytes_ - freed + payload.size();
    topic.held = std::move(payload);
    if (holds) {
        ++books_.decimated;
    } else {
        ++books_.held;
        hold_until(entry, topic.next_ns);
    }
}

void Decimator::take_for_average(Topics::value_type& entry, const CheckedSpectrum& spectrum,
                                 int64_t now_ns) {
    Topic& topic = entry.second;
    const bool holds = topic.due_ns != never;
    const size_t freed = topic.average.bytes();
    if (holds && topic.average.add(spectrum)) {
        ++books_.held;
        return;
    }
    // The first one, or of another kind than those before, which nothing can be made of: to send
    // them now would be more than the rate.
    const size_t bytes = SpectrumAverage::bytes_of(spectrum.header.fft_size);
    if (held_bytes_ - freed + bytes > most_held_bytes) {
        books_.count(Dropped::no_room, 1);
        return;
    }
    if (holds) {
        books_.count(Dropped::changed, topic.average.spectra());
        books_.held -= topic.average.spectra();
        topic.average.clear();
    } else {
        hold_until(entry, now_ns + period_ns_);
    }
    topic.average.add(spectrum);
    held_bytes_ = held_bytes_ - freed + bytes;
    ++books_.held;
}

void Decimator::send_average(Topics::value_type& entry) {
    Topic& topic = entry.second;
    held_bytes_ -= topic.average.bytes();
    books_.held -= topic.average.spectra();
    books_.decimated += topic.average.spectra() - 1;
    ++books_.relayed;
    const std::vector<std::byte> packet = topic.average.take(topic.sequence++);
    send_(entry.first, message_of(topic.kind, packet));
}

void Decimator::send(Topics::value_type& entry, int64_t now_ns) {
    Topic& topic = entry.second;
    due_.erase({topic.due_ns, &entry});
    topic.due_ns = never;
    topic.next_ns = now_ns + period_ns_;
    if (decimation_ == Decimation::average) {
        send_average(entry);
        return;
    }
    held_bytes_ -= topic.held.size();
    --books_.held;
    ++books_.relayed;
    send_(entry.first, std::move(topic.held));
}

void Decimator::send_due(int64_t now_ns) {
    while (next_due_ns() <= now_ns) {
        send(*due_.begin()->second, now_ns);
    }
}

void Decimator::end_run() {
    while (!due_.empty()) {
        const auto [due_ns, entry] = *due_.begin();
        send(*entry, due_ns);
    }
    for (auto& [name, topic] : topics_) {
        topic.sequence = 0;
    }
}

}  // namespace echelle
