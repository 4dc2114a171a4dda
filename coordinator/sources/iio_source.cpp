#include "coordinator/sources/iio_source.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/punctual_sleep.hpp"
#include "coordinator/log.hpp"
#include "coordinator/sources/iio_reader.hpp"
#include "coordinator/sources/iio_scan.hpp"
#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

constexpr int64_t second_ns = 1'000'000'000;
constexpr int64_t look_at_stop_ns = 50'000'000;
constexpr int64_t first_pause_ns = 100'000'000;  // before the device is opened again
constexpr int64_t longest_pause_ns = 2 * second_ns;
constexpr uint32_t most_left_behind = 8;
// A refill lasts about so long: short enough that a time-out loses little, which libiio drops.
constexpr double refill_s = 0.02;
// The clock is compared with the rate only after this long, when buffers no longer matter.
constexpr int64_t shortest_comparison_ns = 2 * second_ns;

struct IioKeys {
    IioChoice choice;
    std::optional<Rational> rate;
    std::optional<uint32_t> samples;
    std::optional<SampleFormat> format;
    uint32_t drop_bits = 0;
    double timeout_s = 1;
};

std::vector<std::string> split(const std::string& list) {
    std::vector<std::string> names;
    size_t begin = 0;
    while (begin <= list.size()) {
        const size_t end = std::min(list.find(',', begin), list.size());
        names.push_back(list.substr(begin, end - begin));
        begin = end + 1;
    }
    return names;
}

IioKeys take_keys(SourceUri& uri) {
    IioKeys keys;
    keys.choice.context = uri.path().empty() ? "local:" : uri.path();
    keys.choice.device = uri.take("device").value_or("");
    if (const auto channels = uri.take("channels")) {
        keys.choice.channels = split(*channels);
    }
    keys.rate = take_rate(uri);
    keys.samples = take_count(uri, "samples");
    if (const auto format = uri.take("format")) {
        keys.format = parse_sample_format(*format);
    }
    keys.drop_bits = take_count(uri, "drop-bits").value_or(0);
    keys.timeout_s = uri.take_number("timeout").value_or(1.0);
    if (!(keys.timeout_s >= 0.01 && keys.timeout_s <= 3600)) {
        throw UsageError("source '" + uri.text() + "' has timeout=" +
                         std::to_string(keys.timeout_s) + ": give 0.01 to 3600 seconds");
    }
    uri.refuse_unknown_keys();
    return keys;
}

Rational rate_of(const IioDevice& device, const IioKeys& keys, const StreamOptions& options) {
    const std::optional<Rational> given = keys.rate ? keys.rate : options.rate;
    if (given) {
        return *given;  // a driver may not say it, or say that of another stage
    }
    if (!device.sampling_frequency()) {
        throw UsageError("device '" + device.name() +
                         "' does not say its sample rate (sampling_frequency): give --rate or the "
                         "key rate=, in Hz");
    }
    return Rational::parse(*device.sampling_frequency(),
                           "sampling_frequency of device '" + device.name() + "':");
}

// What the run has seen, for the report.
struct IioFacts {
    std::array<uint64_t, iio_troubles> troubles{};
    uint64_t opened = 0;
    uint64_t gaps = 0;
    uint64_t samples = 0;           // per channel, published
    uint64_t samples_left_out = 0;  // of parts of scans at a gap
    // Since the device was opened last.
    int64_t first_ns = 0;
    int64_t last_ns = 0;
    uint64_t samples_between = 0;
    std::string last_trouble;
};

class IioSource final : public Source {
  public:
    IioSource(const IioDevice& device, const IioKeys& keys, const StreamOptions& options)
        : scan_(device.elements(), keys.drop_bits), opened_ns_(monotonic_ns()) {
        plan_.choice = keys.choice;
        plan_.elements = device.elements();
        set_stream(device, keys, options);
        set_refill(keys);
        description_ = "IIO device '" + device.name() + "' of " + keys.choice.context + ": " +
                       text_of(stream_) + ", live; losses within the driver cannot be seen";
    }

    Stream stream() const override { return stream_; }
    OverrunPolicy default_policy() const override { return OverrunPolicy::drop; }
    std::string describe() const override { return description_; }
    const char* facts_name() const override { return "source"; }
    nlohmann::json facts() const override;
    void run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) override;

  private:
    void set_stream(const IioDevice& device, const IioKeys& keys, const StreamOptions& options);
    void set_refill(const IioKeys& keys);
    void read_until_trouble(const std::atomic<bool>& stop);
    void take(const IioPart& part, const std::atomic<bool>& stop);
    void begin_stretch(const IioPart& part);
    bool begin_frame(const std::atomic<bool>& stop);
    void commit_frame();
    void note(IioTrouble trouble, const std::string& text);

    IioScan scan_;
    IioReader::Plan plan_;
    Stream stream_;
    int64_t deadline_ns_ = 0;  // of ours, for a refill
    int64_t opened_ns_;        // monotonic time of sample 0
    std::string description_;

    // ---- of the source's thread
    RingWriter* writer_ = nullptr;
    OverrunPolicy policy_ = OverrunPolicy::drop;
    std::span<int16_t> frame_;  // the one that is being filled; empty: none
    uint32_t filled_ = 0;
    FrameStamp stamp_;
    std::vector<std::byte> rest_;  // of a scan that the last part ended in
    bool begins_stretch_ = true;
    bool has_samples_ = false;

    mutable std::mutex mutex_;  // guards facts_
    IioFacts facts_;
};

void IioSource::set_stream(const IioDevice& device, const IioKeys& keys,
                           const StreamOptions& options) {
    FrameGeometry& geometry = stream_.geometry;
    geometry.format = keys.format.value_or(options.format.value_or(SampleFormat::i16));
    const uint32_t parts = geometry.values_per_sample();
    if (scan_.values() % parts != 0) {
        throw UsageError("device '" + device.name() + "' gives " + std::to_string(scan_.values()) +
                         " values a scan, which don't make pairs of re and im: choose channels "
                         "with channels=");
    }
    geometry.channels = scan_.values() / parts;
    geometry.samples = keys.samples.value_or(options.samples.value_or(geometry.samples));
    geometry.layout = Layout::sample_major;
    geometry.validate();
    stream_.rate = rate_of(device, keys, options);
    stream_.epoch_ns = realtime_ns();
    stream_.over_range_low = scan_.least();
    stream_.over_range_high = scan_.most();
    StreamOptions others = options;
    others.rate.reset();  // settled above
    refuse_contradictions(others, stream_, FrameSize::free, "device '" + device.name() + "'");
}

void IioSource::set_refill(const IioKeys& keys) {
    const double wanted = std::clamp(stream_.rate.value() * refill_s, 1.0,
                                     static_cast<double>(stream_.geometry.samples));
    // libiio's scans and the kernel's end together only now and then.
    const size_t unit = scan_.common_scans();
    plan_.refill_scans = (static_cast<size_t>(wanted) + unit - 1) / unit * unit;
    plan_.unpadded_scan_bytes = scan_.unpadded_bytes();
    const double lasts_s = static_cast<double>(plan_.refill_scans) / stream_.rate.value();
    const double timeout_s = std::min(std::max(keys.timeout_s, 4 * lasts_s), 1e6);
    plan_.choice.timeout_ms = static_cast<unsigned int>(std::ceil(timeout_s * 1000));
    deadline_ns_ = static_cast<int64_t>((2 * timeout_s + 1) * static_cast<double>(second_ns));
}

void IioSource::run(RingWriter& writer, OverrunPolicy policy, const std::atomic<bool>& stop) {
    writer_ = &writer;
    policy_ = policy;
    int64_t pause_ns = first_pause_ns;
    while (!stop.load(std::memory_order_relaxed)) {
        const uint64_t before = stamp_.first_sample;
        if (IioReader::left_behind() < most_left_behind) {
            read_until_trouble(stop);
        }
        if (filled_ > 0) {
            commit_frame();
        }
        begins_stretch_ = true;
        rest_.clear();
        pause_ns = stamp_.first_sample != before ? first_pause_ns
                                                 : std::min(2 * pause_ns, longest_pause_ns);
        if (!stop.load(std::memory_order_relaxed)) {
            sleep_until(monotonic_ns() + pause_ns, stop);
        }
    }
}

void IioSource::read_until_trouble(const std::atomic<bool>& stop) {
    IioReader reader(plan_);
    {
        const std::lock_guard lock(mutex_);
        ++facts_.opened;
    }
    int64_t last_ns = monotonic_ns();
    while (!stop.load(std::memory_order_relaxed)) {
        if (const auto part = reader.next(look_at_stop_ns)) {
            take(*part, stop);
            last_ns = monotonic_ns();
        } else if (const auto failure = reader.failure()) {
            note(failure->trouble, failure->text);
            return;
        } else if (monotonic_ns() - last_ns > deadline_ns_) {
            note(IioTrouble::stuck, "no samples and no time-out of libiio for " +
                                        std::to_string(deadline_ns_ / second_ns) + " s");
            return;
        }
    }
}

void IioSource::note(IioTrouble trouble, const std::string& text) {
    bool is_first = false;
    {
        const std::lock_guard lock(mutex_);
        is_first = facts_.troubles[static_cast<size_t>(trouble)]++ == 0;
        facts_.last_trouble = std::string(name_of(trouble)) + ": " + text;
    }
    if (is_first) {
        warn("IIO device: " + std::string(name_of(trouble)) + ": " + text +
             "; it is a gap, and the device is opened again");
    }
}

// Where the clock says that the stretch begins. Sample 0 was due when the source was opened.
void IioSource::begin_stretch(const IioPart& part) {
    const auto scans = static_cast<double>(part.bytes.size()) / static_cast<double>(scan_.bytes());
    const double elapsed_s =
        static_cast<double>(part.arrived_ns - opened_ns_) / static_cast<double>(second_ns);
    const double due = elapsed_s * stream_.rate.value() - scans;
    const uint64_t index = std::max(stamp_.first_sample, due > 0 ? static_cast<uint64_t>(due) : 0);
    if (has_samples_) {
        // Whole frames that the clock misses are lost ones: the books count them.
        stamp_.frame_index += (index - stamp_.first_sample) / stream_.geometry.samples;
        stamp_.flags = frame_gap_before;
    }
    const std::lock_guard lock(mutex_);
    facts_.gaps += has_samples_ ? 1 : 0;
    facts_.first_ns = facts_.last_ns = part.arrived_ns;
    facts_.samples_between = 0;
    stamp_.first_sample = index;
    begins_stretch_ = false;
    has_samples_ = true;
}

void IioSource::take(const IioPart& part, const std::atomic<bool>& stop) {
    const bool is_first = begins_stretch_;
    if (is_first) {
        begin_stretch(part);
    }
    std::vector<std::byte> joined = std::move(rest_);
    joined.insert(joined.end(), part.bytes.begin(), part.bytes.end());
    std::span<const std::byte> bytes(joined);
    uint64_t taken = 0;
    while (bytes.size() >= scan_.bytes() && begin_frame(stop)) {
        const uint32_t samples = stream_.geometry.samples;
        const auto count = static_cast<uint32_t>(
            std::min<size_t>(samples - filled_, bytes.size() / scan_.bytes()));
        const auto scans = bytes.first(count * scan_.bytes());
        scan_.decode(scans, frame_.subspan(size_t{filled_} * scan_.values(),
                                           size_t{count} * scan_.values()));
        filled_ += count;
        taken += count;
        bytes = bytes.subspan(scans.size());
        if (filled_ == samples) {
            commit_frame();
        }
    }
    rest_.assign(bytes.begin(), bytes.end());
    const std::lock_guard lock(mutex_);
    facts_.samples += taken;
    if (!is_first) {
        facts_.samples_between += taken;
        facts_.last_ns = part.arrived_ns;
    }
}

// False when stopped before there was room.
bool IioSource::begin_frame(const std::atomic<bool>& stop) {
    while (frame_.empty()) {
        if (stop.load(std::memory_order_relaxed)) {
            return false;
        }
        if (policy_ == OverrunPolicy::drop || writer_->wait_for_room(look_at_stop_ns)) {
            frame_ = writer_->begin();
        }
    }
    return true;
}

void IioSource::commit_frame() {
    stamp_.valid_samples = filled_;
    writer_->commit(stamp_);
    ++stamp_.frame_index;
    stamp_.first_sample += filled_;
    stamp_.flags = 0;
    frame_ = {};
    filled_ = 0;
}

nlohmann::json IioSource::facts() const {
    const std::lock_guard lock(mutex_);
    nlohmann::json facts;
    facts["samples"] = facts_.samples;
    facts["opened"] = facts_.opened;
    facts["gaps"] = facts_.gaps;
    nlohmann::json& troubles = facts["troubles"] = nlohmann::json::object();
    for (size_t i = 0; i < iio_troubles; ++i) {
        if (facts_.troubles[i] > 0) {
            troubles[name_of(static_cast<IioTrouble>(i))] = facts_.troubles[i];
        }
    }
    facts["last_trouble"] =
        facts_.last_trouble.empty() ? nlohmann::json(nullptr) : nlohmann::json(facts_.last_trouble);
    facts["threads_left_behind"] = IioReader::left_behind();
    facts["rate_hz"] = stream_.rate.value();
    // The driver reports no losses (libiio #888): only the clock can hint at them.
    facts["losses"] = "unverified";
    const int64_t lasted_ns = facts_.last_ns - facts_.first_ns;
    if (lasted_ns >= shortest_comparison_ns) {
        const double seconds = static_cast<double>(lasted_ns) / static_cast<double>(second_ns);
        const double measured = static_cast<double>(facts_.samples_between) / seconds;
        facts["measured_rate_hz"] = measured;
        facts["rate_deviation"] = measured / stream_.rate.value() - 1;
    } else {
        facts["measured_rate_hz"] = nullptr;
        facts["rate_deviation"] = nullptr;
    }
    return facts;
}

}  // namespace

std::unique_ptr<Source> open_iio_source(SourceUri uri, const StreamOptions& options) {
    const IioKeys keys = take_keys(uri);
    const IioDevice device(keys.choice);
    return std::make_unique<IioSource>(device, keys, options);
}

}  // namespace echelle
