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
    claims_.clear();
    work_is_starving_ = false;
    const uint64_t end = ledger_.opened();
    for (uint64_t number = ledger_.oldest_open(); number < end; ++number) {
        const BlockWord word = ledger_.word(number);
        if (word.state == BlockState::claimed) {
            claims_.push_back(word);
        }
        Seen& seen = seen_[number % seen_.size()];
        if (word.packed() != seen.word) {
            seen = {word.packed(), now_ns};
        } else if (now_ns - seen.since_ns > lease_ns) {
            if (word.state == BlockState::claimed) {
                overdue.push_back({number, word.owner, word.incarnation, now_ns - seen.since_ns});
            }
            work_is_starving_ = work_is_starving_ || word.state == BlockState::ready;
        }
    }
    return overdue;
}

bool LeaseWatch::holds_a_block(uint16_t owner, uint16_t incarnation) const {
    return std::any_of(claims_.begin(), claims_.end(), [&](const BlockWord& word) {
        return word.owner == owner && word.incarnation == incarnation;
    });
}

}  // namespace echelle
