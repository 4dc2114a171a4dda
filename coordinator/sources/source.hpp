// A source of frames: one file of this folder for each kind. open_source() reads what there is to
// read of it, so that bad input is refused before anything is forked; run() then feeds the ring
// from a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "common/ring.hpp"
#include "common/source_uri.hpp"
#include "common/stream.hpp"

namespace echelle {

// What the command line says about the stream, for sources that do not say it themselves. Absent
// means that the user gave nothing.
struct StreamOptions {
    std::optional<uint32_t> channels;
    std::optional<uint32_t> samples;  // per frame; 2048 when absent
    std::optional<Rational> rate;
    std::optional<SampleFormat> format;
    std::optional<Layout> layout;
};

enum class OverrunPolicy {
    drop,   // live: the producer never waits, unread frames are overwritten and counted
    block,  // the producer waits for room, nothing is lost
};

class Source {
  public:
    virtual ~Source() = default;

    virtual Stream stream() const = 0;
    // Samples per channel in the whole source, and in its longest stretch without a gap; absent for
    // an endless or live one. nperseg is checked against the stretch.
    virtual std::optional<uint64_t> total_samples() const { return std::nullopt; }
    virtual std::optional<uint64_t> longest_stretch() const { return total_samples(); }
    virtual OverrunPolicy default_policy() const = 0;
    // One line for the report: what the source is and anything that a reader of figures must know.
    virtual std::string describe() const = 0;
    // What the report says of the source under facts_name(): of a recording its gaps, remarks and
    // annotations; of a live source what it has counted, by cause. Null: nothing. The main thread
    // calls it while run() runs in the source's.
    virtual nlohmann::json facts() const;
    virtual const char* facts_name() const { return "recording"; }
    // True when the source overwrites nothing but its stamps, so that frames recur (sim: loops).
    virtual std::optional<uint64_t> distinct_frames() const { return std::nullopt; }

    // Bytes around each frame of the ring that run() writes as well.
    virtual RingMargin ring_margin() const { return {}; }
    // In a process forked from the one that opened it: closes what must not stay open there. A
    // card's driver counts its readers, and would refuse us when we open it again.
    virtual void let_go() {}
    // What takes its time before the first frame and is no waiting for it. Runs in the source's own
    // thread, before run().
    virtual void prepare(Ring& ring, const std::atomic<bool>& stop);
    // The ring that an outside producer fills, when the source is one; run() is then not called.
    virtual std::optional<Ring> take_ring() { return std::nullopt; }

    // Writes frames until the source's end or `stop`, waiting for room when the policy is block;
    // the caller ends the ring. Runs in the source's own thread. Throws RunError.
    virtual void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) = 0;
};

// Opens what a source's URI names, or, where it is only a path, the recording there, known by its
// content. Throws UsageError: unknown scheme, missing file, what is missing in `options`, unknown
// keys, `options` that contradict the source or its keys.
std::unique_ptr<Source> open_source(const std::string& text, const StreamOptions& options);

}  // namespace echelle
