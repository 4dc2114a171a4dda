#include "coordinator/sources/reframer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/crc32.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr size_t magic_bytes = sizeof card_header_magic;

// Where the magic begins at `from` or later, whole or cut off by the end of `bytes`;
// `bytes.size()` when it does not.
size_t find_magic(std::span<const std::byte> bytes, size_t from) {
    if (bytes.empty()) {
        return 0;
    }
    const auto* const begin = reinterpret_cast<const char*>(bytes.data());
    const void* const found =
        memmem(begin + from, bytes.size() - from, &card_header_magic, magic_bytes);
    if (found != nullptr) {
        return static_cast<size_t>(static_cast<const char*>(found) - begin);
    }
    size_t tail = bytes.size() - std::min(bytes.size() - from, magic_bytes - 1);
    while (tail < bytes.size() &&
           std::memcmp(begin + tail, &card_header_magic, bytes.size() - tail) != 0) {
        ++tail;
    }
    return tail;
}

}  // namespace

size_t find_card_header(std::span<const std::byte> bytes, CardFrameHeader& header) {
    size_t at = 0;
    while ((at = find_magic(bytes, at)) + card_header_bytes <= bytes.size()) {
        if (parse_card_header(bytes.subspan(at), header) == CardFrameVerdict::good) {
            return at;
        }
        ++at;
    }
    return bytes.size();
}

Reframer::Reframer(const CardFrameHeader& first)
    : shape_(first), wire_bytes_(card_frame_bytes(first)) {}

Reframer Reframer::headerless(const FrameGeometry& geometry) {
    CardFrameHeader shape;
    shape.header_bytes = 0;
    shape.geometry = geometry;
    Reframer reframer(shape);
    reframer.headerless_ = true;
    reframer.wire_bytes_ = geometry.frame_bytes();
    return reframer;
}

void Reframer::assemble_in(std::span<std::byte> place) {
    ECHELLE_INVARIANT(place.size() == wire_bytes_ && have_ == 0);
    place_ = place;
    fills_ = 0;
}

void Reframer::filled(size_t count) {
    ECHELLE_INVARIANT(count <= place_.size() - have_);
    have_ += count;
    ++fills_;
}

Reframer::Event Reframer::advance() {
    if (headerless_) {
        return have_ < wire_bytes_ ? Event::more : Event::frame;
    }
    if (!has_header_) {
        if (have_ < card_header_bytes) {
            return Event::more;
        }
        const Event event = find_header();
        if (event != Event::more || !has_header_) {
            return event;
        }
    }
    return have_ < wire_bytes_ ? Event::more : judge_frame();
}

// The bytes at the front as a header; on success has_header_ is set. What is not one is skipped.
Reframer::Event Reframer::find_header() {
    if (is_sound_header(place_.first(have_), header_)) {
        has_header_ = true;
        in_step_ = true;
        fills_ = have_ == wire_bytes_ ? fills_ : 2;  // what was searched came in pieces
        return Event::more;
    }
    const bool was_in_step = std::exchange(in_step_, false);
    counts_.resynchronised += was_in_step ? 1 : 0;
    skip_to_header(1);
    // Only where one was due: magic bytes among garbage are no frame.
    return was_in_step ? Event::bad_header : advance();
}

bool Reframer::is_sound_header(std::span<const std::byte> bytes, CardFrameHeader& header) {
    CardFrameHeader read;
    switch (parse_card_header(bytes, read)) {
        case CardFrameVerdict::no_magic:
            return false;
        case CardFrameVerdict::bad_crc:
            ++counts_.bad_header_crc;
            return false;
        case CardFrameVerdict::unknown_version:
            ++counts_.unknown_version;
            return false;
        case CardFrameVerdict::impossible:
            ++counts_.impossible;
            return false;
        case CardFrameVerdict::good:
            break;
    }
    if (read.geometry != shape_.geometry || read.header_bytes != shape_.header_bytes ||
        read.has_trailer() != shape_.has_trailer()) {
        ++counts_.other_shape;
        return false;
    }
    header = read;
    return true;
}

Reframer::Event Reframer::judge_frame() {
    const std::span<const std::byte> frame = place_;
    if (!shape_.has_trailer()) {
        // A frame in several pieces may have lost one. The next header inside it says so.
        CardFrameHeader inner;
        if (fills_ > 1 && find_card_header(frame.subspan(card_header_bytes), inner) !=
                              frame.size() - card_header_bytes) {
            return lose_frame(Event::torn);
        }
        ++counts_.without_checksum;
        return Event::frame;
    }
    CardFrameTrailer trailer;
    if (parse_card_trailer(frame.last(card_trailer_bytes), trailer) != CardFrameVerdict::good ||
        trailer.sequence != header_.sequence) {
        return lose_frame(Event::torn);
    }
    if (crc32(frame.subspan(header_.header_bytes, header_.geometry.frame_bytes())) !=
        trailer.data_crc) {
        return lose_frame(Event::bad_data);
    }
    header_.flags |= trailer.flags;
    return Event::frame;
}

Reframer::Event Reframer::lose_frame(Event why) {
    (why == Event::torn ? counts_.torn : counts_.bad_data_crc) += 1;
    has_header_ = false;
    if (why == Event::bad_data) {
        // Its borders are sound: the next frame begins where it ends.
        counts_.skipped_bytes += have_;
        have_ = 0;
        fills_ = 0;
        return why;
    }
    counts_.resynchronised += 1;
    in_step_ = false;
    skip_to_header(1);
    return why;
}

void Reframer::skip_to_header(size_t from) {
    const std::span<const std::byte> bytes = place_.first(have_);
    size_t at = find_magic(bytes, from);
    CardFrameHeader header;
    while (at + card_header_bytes <= bytes.size() && !is_sound_header(bytes.subspan(at), header)) {
        at = find_magic(bytes, at + 1);
    }
    drop(at);
}

void Reframer::drop(size_t count) {
    counts_.skipped_bytes += count;
    std::memmove(place_.data(), place_.data() + count, have_ - count);
    have_ -= count;
    fills_ = 2;
}

bool Reframer::give_up() {
    const bool had_begun = headerless_ ? have_ > 0 : has_header_;
    counts_.skipped_bytes += have_;
    have_ = 0;
    has_header_ = false;
    in_step_ = false;
    fills_ = 0;
    return had_begun;
}

}  // namespace echelle
