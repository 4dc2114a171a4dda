// Finds a card's frames (common/card_frame.hpp) in a stream of bytes that comes in pieces of any
// size: short reads, long ones, bytes lost in between, garbage. Nothing that a driver says about
// borders is believed; magic, checksums and geometry decide.
//
// A frame is put together in a place that the caller gives, whole as on the wire, so that a read
// may go straight into it. Owned and called by the thread that reads. No errors are thrown: what is
// wrong is counted, and the search goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/card_frame.hpp"

namespace echelle {

struct ReframerCounts {
    uint64_t skipped_bytes = 0;     // that belong to no whole frame
    uint64_t resynchronised = 0;    // times at which a frame did not begin where it should
    uint64_t bad_header_crc = 0;    // the magic, without a header behind it
    uint64_t unknown_version = 0;   // headers of another major version
    uint64_t impossible = 0;        // headers with a good checksum that contradict themselves
    uint64_t other_shape = 0;       // good headers of another geometry than the stream began with
    uint64_t bad_data_crc = 0;      // whole frames whose samples have another checksum
    uint64_t torn = 0;              // frames without an end: bytes of theirs are missing
    uint64_t without_checksum = 0;  // frames taken on trust: they have no trailer
};

class Reframer {
  public:
    enum class Event {
        more,        // the frame is not whole yet
        frame,       // frame() is whole and sound, and is to be taken away with next()
        bad_header,  // a damaged header: its frame is lost
        bad_data,    // a frame is lost to a wrong checksum
        torn,        // a frame is lost since bytes of it are
    };

    // Frames of the shape of `first`: its geometry, header_bytes and whether it has a trailer.
    explicit Reframer(const CardFrameHeader& first);
    // Frames without a header, one behind the other: nothing can be found or missed.
    static Reframer headerless(const FrameGeometry& geometry);

    size_t wire_bytes() const { return wire_bytes_; }
    // Where the next frame is put together, wire_bytes() long; to be called when none is begun.
    void assemble_in(std::span<std::byte> place);
    // What is still to be filled, from its beginning; never empty but while a frame is whole.
    std::span<std::byte> rest() const { return place_.subspan(have_); }
    bool is_between_frames() const { return have_ == 0; }
    // `count` bytes have been put at the beginning of rest(). To be followed by advance().
    void filled(size_t count);
    // What the bytes mean. Called again and again until it says more or frame.
    Event advance();

    // The whole frame's header, with the trailer's flags.
    const CardFrameHeader& frame() const { return header_; }
    void next() {
        have_ = 0;
        has_header_ = false;
    }
    // Gives up what has been put together: what comes is not the continuation. True when a frame
    // had been begun.
    bool give_up();

    const ReframerCounts& counts() const { return counts_; }

  private:
    Event find_header();
    Event judge_frame();
    Event lose_frame(Event why);
    bool is_sound_header(std::span<const std::byte> bytes, CardFrameHeader& header);
    // Drops bytes from the front: to the next sound header at `from` or later, or to what may be
    // the beginning of one.
    void skip_to_header(size_t from);
    void drop(size_t count);

    CardFrameHeader shape_;
    bool headerless_ = false;
    size_t wire_bytes_ = 0;
    std::span<std::byte> place_;
    size_t have_ = 0;      // bytes of place_ that are filled
    uint32_t fills_ = 0;   // in how many pieces
    bool in_step_ = true;  // the next header is where the frame before ended
    bool has_header_ = false;
    CardFrameHeader header_;
    ReframerCounts counts_;
};

// Where the first sound header of any shape stands, or `bytes.size()` with nothing found. For the
// beginning, when the shape is not known.
size_t find_card_header(std::span<const std::byte> bytes, CardFrameHeader& header);

}  // namespace echelle
