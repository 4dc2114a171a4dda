// Looks at what came from upstream before anybody else does: only messages of a feed, whole and
// undamaged, are passed on. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "clients/hub/hub_books.hpp"
#include "common/coded_packet.hpp"
#include "common/feed_interest.hpp"
#include "common/packet.hpp"

namespace echelle {

// A whole spectrum; refers to the message's bytes.
struct CheckedSpectrum {
    SpectrumTopic topic = SpectrumTopic::psd;
    PacketHeader header;
    PacketTrailer trailer;
    std::span<const std::byte> data;  // as they are coded
    float offset = 0;                 // of 2.x
    float step = 1;

    // The values as float32; `to` holds header.fft_size.
    void values(std::span<float> to) const;
};

struct CheckedText {
    enum class Kind { hello, event, end, figures } kind = Kind::event;
};

using Checked = std::variant<Invalid, CheckedSpectrum, CheckedText>;

Checked check_message(std::string_view topic, std::span<const std::byte> payload);

}  // namespace echelle
