// Percentiles of durations without keeping them: log-linear buckets, 64 to the octave, so a value
// is known to 1.6 %. Not shared: the owner guards it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace echelle {

class LatencyHistogram {
  public:
    void add(int64_t duration_ns) {
        const auto value = static_cast<uint64_t>(std::max<int64_t>(duration_ns, 0));
        counts_[bucket_of(value)] += 1;
        count_ += 1;
        sum_ns_ += static_cast<double>(value);
        largest_ns_ = std::max(largest_ns_, value);
    }
    uint64_t count() const { return count_; }
    double sum_s() const { return sum_ns_ / 1e9; }
    double max_us() const { return static_cast<double>(largest_ns_) / 1000.0; }
    // The duration that the fraction `quantile` of all does not exceed; 0 when there are none.
    double percentile_us(double quantile) const {
        const auto wanted = static_cast<uint64_t>(quantile * static_cast<double>(count_));
        uint64_t seen = 0;
        for (size_t bucket = 0; bucket < counts_.size(); ++bucket) {
            seen += counts_[bucket];
            if (seen > wanted || (seen == count_ && seen > 0)) {
                return std::min(static_cast<double>(upper_edge(bucket)) / 1000.0, max_us());
            }
        }
        return 0.0;
    }
    // How many durations are at most this long; those within 1.6 % of it may be left out.
    uint64_t count_up_to(int64_t edge_ns) const {
        uint64_t seen = 0;
        for (size_t bucket = 0;
             bucket < counts_.size() && upper_edge(bucket) <= static_cast<uint64_t>(edge_ns);
             ++bucket) {
            seen += counts_[bucket];
        }
        return seen;
    }

  private:
    static constexpr unsigned int sub_bits = 6;
    static constexpr uint64_t sub_count = uint64_t{1} << sub_bits;

    static size_t bucket_of(uint64_t value) {
        if (value < sub_count) {
            return value;
        }
        const unsigned int octave = static_cast<unsigned int>(std::bit_width(value)) - 1 - sub_bits;
        return (octave + 1) * sub_count + ((value >> octave) - sub_count);
    }
    static uint64_t upper_edge(size_t bucket) {
        if (bucket < sub_count) {
            return bucket;
        }
        const size_t octave = bucket / sub_count - 1;
        return ((bucket % sub_count + sub_count + 1) << octave) - 1;
    }

    std::array<uint64_t, (64 - sub_bits + 1) * sub_count> counts_{};
    uint64_t count_ = 0;
    double sum_ns_ = 0;
    uint64_t largest_ns_ = 0;
};

}  // namespace echelle
