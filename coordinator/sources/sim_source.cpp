#include "coordinator/sources/sim_source.hpp"

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "fpga_sim/frame_producer.hpp"
#include "fpga_sim/sim_options.hpp"

namespace echelle {
namespace {

class SimSource final : public Source {
  public:
    explicit SimSource(SimOptions options) : options_(std::move(options)), producer_(options_) {}

    Stream stream() const override { return options_.stream; }
    std::optional<uint64_t> total_samples() const override { return options_.total_samples(); }
    OverrunPolicy default_policy() const override {
        return options_.pace == Pace::realtime ? OverrunPolicy::drop : OverrunPolicy::block;
    }
    std::string describe() const override { return options_.text(); }

    void prepare(Ring& ring, const std::atomic<bool>& stop) override { producer_.fill(ring, stop); }
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override {
        producer_.run(writer, policy == OverrunPolicy::block, stop);
    }

  private:
    SimOptions options_;
    FrameProducer producer_;
};

}  // namespace

std::unique_ptr<Source> open_sim_source(SourceUri uri, const StreamOptions& options) {
    if (!uri.path().empty()) {
        throw UsageError("source '" + uri.text() + "' has the path '" + uri.path() +
                         "': write sim: or sim:?key=value");
    }
    SimArguments arguments;
    arguments.channels = options.channels;
    arguments.samples = options.samples;
    arguments.rate = options.rate;
    arguments.format = options.format;
    arguments.layout = options.layout;
    take_from(uri, arguments);
    uri.refuse_unknown_keys();
    SimOptions complete = complete_sim_options(arguments);
    if (complete.pace == Pace::realtime) {
        complete.stream.epoch_ns = realtime_ns();
    }
    return std::make_unique<SimSource>(std::move(complete));
}

}  // namespace echelle
