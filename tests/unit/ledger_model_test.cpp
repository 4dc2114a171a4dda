// The ledger against a plain model of it, in any order of calls.
#include <algorithm>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "common/ledger.hpp"

namespace echelle {
namespace {

constexpr LedgerShape shape{.capacity = 5, .most_frames = 1, .workers = 3, .result_bytes = 64};

uint64_t open_block(Ledger& ledger, uint64_t mark) {
    BlockDescriptor block;
    block.group = mark;
    block.listed_frames = 1;
    return ledger.open(block, std::vector<uint64_t>{mark});
}

// What a block may go through, kept beside the ledger in plain variables.
class Model {
  public:
    explicit Model(uint32_t seed) : engine_(seed), ledger_(shape) {}

    void step() {
        switch (random(7)) {
            case 0:
            case 1:
                open();
                break;
            case 2:
            case 3:
                claim();
                break;
            case 4:
                finish();
                break;
            case 5:
                random(2) == 0 ? die() : drop();
                break;
            default:
                retire();
        }
        check();
    }
    void check_sums() const {
        EXPECT_EQ(opened_, retired_ + states_.size());
        EXPECT_GT(retired_, 500U);
        EXPECT_GT(failed_, 0U);
    }

  private:
    uint64_t random(uint64_t below) { return engine_() % below; }
    void open() {
        EXPECT_EQ(ledger_.has_room(1), states_.size() < 5);
        if (states_.size() < 5) {
            EXPECT_EQ(open_block(ledger_, opened_), opened_);
            states_[opened_++] = BlockState::ready;
        }
    }
    void claim() {
        const auto oldest = std::ranges::find_if(
            states_, [](const auto& entry) { return entry.second == BlockState::ready; });
        const auto owner = static_cast<uint16_t>(random(3));
        const auto claim = ledger_.claim_oldest(owner, lives_[owner]);
        ASSERT_EQ(claim.has_value(), oldest != states_.end());
        if (claim) {
            EXPECT_EQ(claim->number, oldest->first);
            oldest->second = BlockState::claimed;
            claims_.push_back(*claim);
        }
    }
    void finish() {
        if (claims_.empty()) {
            return;
        }
        const Claim claim =
            claims_[claims_.size() - 1 - random(std::min<size_t>(claims_.size(), 9))];
        const bool held = is_held(claim);
        EXPECT_EQ(ledger_.finish(claim), held);
        if (held) {
            states_[claim.number] = BlockState::done;
        }
    }
    bool is_held(const Claim& claim) const {
        const auto state = states_.find(claim.number);
        return state != states_.end() && state->second == BlockState::claimed &&
               lives_[claim.word.owner] == claim.word.incarnation;
    }
    void die() {
        const auto owner = static_cast<uint16_t>(random(3));
        Ledger::Reclaimed expected;
        for (const Claim& claim : claims_) {
            if (claim.word.owner == owner && is_held(claim)) {
                const bool fails = ++deaths_[claim.number] == 3;
                states_[claim.number] = fails ? BlockState::failed : BlockState::ready;
                (fails ? expected.failed : expected.requeued) += 1;
            }
        }
        const auto reclaimed = ledger_.reclaim(owner, lives_[owner]);
        EXPECT_EQ(reclaimed.requeued, expected.requeued);
        EXPECT_EQ(reclaimed.failed, expected.failed);
        failed_ += expected.failed;
        ++lives_[owner];
    }
    void drop() {
        const uint64_t number = opened_ - std::min<uint64_t>(opened_, 1 + random(6));
        const auto state = states_.find(number);
        const bool ready = state != states_.end() && state->second == BlockState::ready;
        if (opened_ > 0) {
            EXPECT_EQ(ledger_.drop(number, DropReason::overrun), ready);
        }
        if (ready) {
            state->second = BlockState::dropped;
        }
    }
    void retire() {
        if (!states_.empty() && states_.begin()->second >= BlockState::done) {
            ledger_.retire(states_.begin()->first);
            states_.erase(states_.begin());
            ++retired_;
        }
    }
    void check() {
        EXPECT_EQ(ledger_.opened(), opened_);
        EXPECT_EQ(ledger_.oldest_open(), retired_);
        for (const auto& [number, state] : states_) {
            EXPECT_EQ(ledger_.word(number).state, state);
            EXPECT_EQ(ledger_.descriptor(number).group, number);
        }
    }

    std::mt19937 engine_;
    Ledger ledger_;
    std::map<uint64_t, BlockState> states_;  // of the open blocks
    std::map<uint64_t, int> deaths_;
    std::vector<Claim> claims_;  // every one ever given out: most are stale
    uint16_t lives_[3] = {};
    uint64_t opened_ = 0;
    uint64_t retired_ = 0;
    uint64_t failed_ = 0;
};

TEST(LedgerModel, DoesWhatAPlainModelDoesInAnyOrderOfCalls) {
    for (uint32_t seed = 1; seed <= 3; ++seed) {
        Model model(seed);
        for (int i = 0; i < 30'000; ++i) {
            model.step();
        }
        model.check_sums();
    }
}

}  // namespace
}  // namespace echelle
