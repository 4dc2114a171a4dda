#include "clients/hub/message_check.hpp"

#include <cstring>

#include "clients/hub/hub_texts.hpp"

namespace echelle {
namespace {

Invalid invalid_of(PacketError error) {
    switch (error) {
        case PacketError::too_short:
            return Invalid::too_short;
        case PacketError::too_long:
            return Invalid::too_long;
        case PacketError::bad_crc:
            return Invalid::bad_crc;
        case PacketError::unknown_major:
            return Invalid::unknown_major;
        case PacketError::bad_trailer:
            return Invalid::bad_trailer;
        case PacketError::unknown_coding:
            return Invalid::unknown_coding;
        case PacketError::none:
            break;
    }
    return Invalid::parts;  // of no error there is no cause: not reached
}

Checked checked_packet(std::span<const std::byte> bytes) {
    PacketView view;
    if (const PacketError error = decode_packet(bytes, view); error != PacketError::none) {
        return invalid_of(error);
    }
    if (!view.has_trailer) {
        return Invalid::no_trailer;
    }
    return CheckedSpectrum{.topic = SpectrumTopic::psd,
                           .header = view.header,
                           .trailer = view.trailer,
                           .data = view.data};
}

Checked checked_coded_packet(SpectrumTopic topic, std::span<const std::byte> bytes) {
    CodedPacketView view;
    if (const PacketError error = decode_coded_packet(bytes, view); error != PacketError::none) {
        return invalid_of(error);
    }
    const auto coding =
        topic == SpectrumTopic::psd16 ? PacketCoding::float16 : PacketCoding::decibel8;
    if (view.coding != coding) {
        return Invalid::topic;
    }
    return CheckedSpectrum{.topic = topic,
                           .header = view.header,
                           .trailer = view.trailer,
                           .data = view.data,
                           .offset = view.offset,
                           .step = view.step};
}

std::optional<SpectrumTopic> family_of(std::string_view topic) {
    for (size_t i = 0; i < spectrum_topics; ++i) {
        if (topic.starts_with(spectrum_topic_names[i])) {
            return static_cast<SpectrumTopic>(i);
        }
    }
    return std::nullopt;
}

Checked checked_spectrum(SpectrumTopic family, std::string_view topic,
                         std::span<const std::byte> payload) {
    Checked checked = family == SpectrumTopic::psd ? checked_packet(payload)
                                                   : checked_coded_packet(family, payload);
    if (const auto* spectrum = std::get_if<CheckedSpectrum>(&checked);
        spectrum != nullptr && topic != spectrum_topic(family, spectrum->header.channel_id)) {
        return Invalid::topic;
    }
    return checked;
}

}  // namespace

void CheckedSpectrum::values(std::span<float> to) const {
    if (topic == SpectrumTopic::psd) {
        std::memcpy(to.data(), data.data(), to.size_bytes());
        return;
    }
    CodedPacketView view;
    view.header = header;
    view.coding = topic == SpectrumTopic::psd16 ? PacketCoding::float16 : PacketCoding::decibel8;
    view.offset = offset;
    view.step = step;
    view.data = data;
    view.values(to);
}

Checked check_message(std::string_view topic, std::span<const std::byte> payload) {
    if (const auto family = family_of(topic)) {
        return checked_spectrum(*family, topic, payload);
    }
    CheckedText text;
    if (topic == "hello/") {
        text.kind = CheckedText::Kind::hello;
    } else if (topic == "event/end") {
        text.kind = CheckedText::Kind::end;
    } else if (topic.starts_with("stat/")) {
        text.kind = CheckedText::Kind::figures;
    } else if (!topic.starts_with("event/")) {
        return Invalid::topic;
    }
    const std::string_view content(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (!is_json_object(content)) {
        return Invalid::text;
    }
    return text;
}

}  // namespace echelle
