#include "clients/mqtt/gateway.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "clients/mqtt/messages.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

constexpr size_t longest_text = 1 << 20;  // of events and figures
constexpr size_t most_event_names = 64;   // the feed has seven; others are not told apart for ever
constexpr size_t longest_event_name = 64;

std::string digits_of(uint32_t channel) {
    std::array<char, 16> digits{};
    std::snprintf(digits.data(), digits.size(), "%05u", channel);
    return digits.data();
}

bool is_event_name(const std::string& name) {
    return !name.empty() && name.size() <= longest_event_name &&
           std::all_of(name.begin(), name.end(),
                       [](unsigned char c) { return std::isalnum(c) != 0 || c == '-'; });
}

std::string text_of(const client::Message& message) {
    return {reinterpret_cast<const char*>(message.payload.data()), message.payload.size()};
}

}  // namespace

Gateway::Gateway(const Options& options, const std::string& boot, Outbox& outbox,
                 Connection connection)
    : options_(options),
      boot_(boot),
      outbox_(outbox),
      connection_(std::move(connection)),
      period_ns_(options.rate > 0 ? static_cast<int64_t>(1e9 / options.rate) : 0) {}

void Gateway::begin_run(const RunDescription& description, const std::string& topic_prefix) {
    run_ = description;
    prefix_ = topic_prefix;
    ++books_.runs;
    // Their sequences go on from run to run.
    channels_.resize(std::max<size_t>(channels_.size(), run_.channels));
    check_bands();
}

void Gateway::check_bands() const {
    if (!options_.bands.empty() && !run_.is_density) {
        throw RunError(
            "--band: powers of bands are sums of a density, and this run's spectra are "
            "scaled otherwise: start the coordinator with --scaling density");
    }
    const double spacing_hz = run_.axis.bin_spacing_hz;
    const double low_hz = run_.axis.first_bin_hz - spacing_hz / 2;
    const double high_hz = low_hz + run_.bins * spacing_hz;
    for (const Band& band : options_.bands) {
        if (bins_of(band, run_.axis, run_.bins).is_empty()) {
            throw RunError("--band " + band.name + " holds no bin: they stand every " +
                           std::to_string(spacing_hz) + " Hz from " +
                           std::to_string(run_.axis.first_bin_hz) + " to " +
                           std::to_string(run_.axis.frequency(run_.bins - 1)) + " Hz");
        }
        if (band.low_hz < low_hz || band.high_hz > high_hz) {
            warn("--band " + band.name + " reaches beyond the spectrum, which ends at " +
                 std::to_string(low_hz) + " and " + std::to_string(high_hz) +
                 " Hz: its power is of what lies inside");
        }
    }
}

void Gateway::count_bad_packet() {
    ++books_.spectra_in;
    ++books_.bad;
}

void Gateway::take(const client::Message& message, int64_t now_ns) {
    if (message.packet) {
        take_spectrum(message, now_ns);
    } else if (message.payload.size() > longest_text) {
        ++books_.bad_texts;
    } else if (message.topic.starts_with("event/")) {
        take_event(message);
    } else if (message.topic == "stat/") {
        take_figures(message);
    }
}

// A packet that belongs where it came, of the axis that the run has: what follows relies on it.
bool Gateway::is_expected(const client::Message& message) const {
    const client::SpectrumPacket& packet = *message.packet;
    const std::string kind = message.topic.substr(0, message.topic.find('/') + 1);
    return packet.trailer && packet.channel_id < run_.channels && packet.fft_size == run_.bins &&
           message.topic == kind + digits_of(packet.channel_id) &&
           packet.trailer->first_bin_hz == run_.axis.first_bin_hz &&
           packet.trailer->bin_spacing_hz == run_.axis.bin_spacing_hz;
}

void Gateway::take_spectrum(const client::Message& message, int64_t now_ns) {
    ++books_.spectra_in;
    if (!is_expected(message)) {
        ++books_.bad;
        return;
    }
    const client::SpectrumPacket& packet = *message.packet;
    Channel& channel = channels_[packet.channel_id];
    const bool is_coded = packet.coding != client::Coding::float32;
    if (!(is_coded ? channel.coded : channel.figures).passes(period_ns_, now_ns)) {
        ++books_.rate_limited;
        return;
    }
    ++books_.used;
    if (is_coded) {
        const bool is_16 = packet.coding == client::Coding::float16;
        publish_packet(message, is_16 ? "psd16" : "psd8", channel);
        return;
    }
    if (!options_.bands.empty() || options_.peaks > 0) {
        values_.resize(packet.fft_size);
        packet.copy_values(values_);
    }
    publish_bands(packet, channel);
    publish_peaks(packet, channel);
    if (options_.spectra == SpectraForm::psd) {
        publish_packet(message, "psd", channel);
    }
}

void Gateway::publish_bands(const client::SpectrumPacket& packet, Channel& channel) {
    if (options_.bands.empty()) {
        return;
    }
    Named powers;
    for (const Band& band : options_.bands) {
        powers.emplace_back(band.name, band_power(values_, band, run_.axis));
    }
    const uint64_t sequence = channel.bands++;
    push(channel_topic("bands", packet.channel_id), bands_text({boot_, sequence}, packet, powers),
         sequence, true);
}

void Gateway::publish_peaks(const client::SpectrumPacket& packet, Channel& channel) {
    if (options_.peaks == 0) {
        return;
    }
    const std::vector<Peak> peaks = peaks_of(values_, run_.axis, options_.peaks);
    const uint64_t sequence = channel.peaks++;
    push(channel_topic("peaks", packet.channel_id), peaks_text({boot_, sequence}, packet, peaks),
         sequence, true);
}

void Gateway::publish_packet(const client::Message& message, const std::string& kind,
                             Channel& channel) {
    push(channel_topic(kind, message.packet->channel_id), text_of(message), channel.spectra++, true,
         true);
}

void Gateway::take_event(const client::Message& message) {
    const std::string name = message.topic.substr(message.topic.find('/') + 1);
    const bool is_known = event_sequences_.contains(name);
    if (!is_event_name(name) || (!is_known && event_sequences_.size() >= most_event_names)) {
        ++books_.bad_texts;
        return;
    }
    uint64_t& sequence = event_sequences_[name];
    auto text = event_text({boot_, sequence}, text_of(message));
    if (!text) {
        ++books_.bad_texts;
        return;
    }
    ++books_.events;
    push("event/" + name, std::move(*text), sequence++, false);
}

void Gateway::take_figures(const client::Message& message) {
    auto text = stat_text({boot_, stat_sequence_}, text_of(message), books_, outbox_.books(),
                          connection_());
    if (!text) {
        ++books_.bad_texts;
        return;
    }
    ++books_.figures;
    push("stat", std::move(*text), stat_sequence_++, true);
}

// At QoS 1 everything is to arrive.
void Gateway::push(const std::string& topic, std::string payload, uint64_t sequence,
                   bool latest_wins, bool is_packet) {
    OutgoingMessage message;
    message.topic = prefix_ + "/" + topic;
    message.payload = std::move(payload);
    message.sequence = sequence;
    message.is_packet = is_packet;
    message.latest_wins = latest_wins && options_.broker.qos == Qos::at_most_once;
    outbox_.push(std::move(message));
}

std::string Gateway::channel_topic(const std::string& kind, uint32_t channel) const {
    return kind + "/" + digits_of(channel);
}

}  // namespace echelle::mqtt
