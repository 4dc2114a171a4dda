#include "coordinator/sources/ring_source.hpp"

#include <utility>

#include "common/error.hpp"
#include "common/invariant.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

class RingSource : public Source {
  public:
    RingSource(Ring ring, std::string name)
        : ring_(std::move(ring)),
          stream_(ring_->stream()),
          description_("ring '" + std::move(name) + "': " + text_of(stream_) + ", " +
                       std::to_string(ring_->slot_count()) + " frames of " +
                       std::to_string(stream_.geometry.samples) + " samples, live") {}

    Stream stream() const override { return stream_; }
    OverrunPolicy default_policy() const override { return OverrunPolicy::drop; }
    std::string describe() const override { return description_; }
    std::optional<Ring> take_ring() override { return std::exchange(ring_, std::nullopt); }
    void run(RingWriter&, OverrunPolicy, const std::atomic<bool>&) override {
        broken_invariant("a ring source is filled from outside and never run", __FILE__, __LINE__);
    }

  private:
    std::optional<Ring> ring_;
    Stream stream_;
    std::string description_;
};

}  // namespace

// Takes the URI as every source does, though this one has no key to take.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
std::unique_ptr<Source> open_ring_source(SourceUri uri, const StreamOptions& options) {
    uri.refuse_unknown_keys();
    if (uri.path().empty()) {
        throw UsageError("source '" + uri.text() + "' names no ring: write it like ring:NAME");
    }
    Ring ring = Ring::attach(uri.path());
    refuse_contradictions(options, ring.stream(), FrameSize::fixed, "ring '" + uri.path() + "'");
    return std::make_unique<RingSource>(std::move(ring), uri.path());
}

}  // namespace echelle
