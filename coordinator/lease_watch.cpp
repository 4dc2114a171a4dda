#include "coordinator/lease_watch.hpp"

#include <algorithm>

namespace echelle {

int64_t lease_for(double mean_block_ns) {
    constexpr double shortest_ns = 250e6;
    constexpr double longest_ns = 60e9;
    constexpr double unmeasured_ns = 10e9;
    const double wanted = mean_block_ns > 0 ? 32 * mean_block_ns : unmeasured_ns;
    return static_cast<int64_t>(std::clamp(wanted, shortest_ns, longest_ns));
}

std::vector<LeaseWatch::Overdue> LeaseWatch::look(int64_t now_ns, int64_t lease_ns) {
    std::vector<Overdue> overdue;
    const uint64_t end = ledger_.opened();
    for (uint64_t number = ledger_.oldest_open(); number < end; ++number) {
        const BlockWord word = ledger_.word(number);
        Seen& seen = seen_[number % seen_.size()];
        if (word.packed() != seen.word) {
            seen = {word.packed(), now_ns};
        } else if (word.state == BlockState::claimed && now_ns - seen.since_ns > lease_ns) {
            overdue.push_back({number, word.owner, word.incarnation, now_ns - seen.since_ns});
        }
    }
    return overdue;
}

}  // namespace echelle
