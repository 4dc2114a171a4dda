// Ingest against a real ring and ledger, with the test as producer, worker and collector.
#include "coordinator/ingest.hpp"

#include <thread>

#include <gtest/gtest.h>

#include "common/clock.hpp"

namespace echelle {
namespace {

class CountingTokens : public TokenSender {
  public:
    void send(uint32_t count) override { sent += count; }
    std::atomic<uint32_t> sent{0};
};

class IngestTest : public testing::Test {
  protected:
    static constexpr uint64_t slots = 32;

    IngestTest() {
        stream_.geometry = {4, 64, SampleFormat::i16, Layout::channel_major};
        stream_.rate = {1'000'000, 1};
        plan_.grid = {16, 8};
        plan_.group_frames = 2;
        plan_.block_channels = 2;
        plan_.blocks_per_group = 2;
        plan_.history_frames = 1;
        ring_.emplace(Ring::anonymous(stream_, slots));
        ledger_.emplace(LedgerShape{8, 3, 1, 64});
        writer_.emplace(*ring_);
    }

    void start(OverrunPolicy policy) {
        Ingest::Setup setup;
        setup.ring = &*ring_;
        setup.ledger = &*ledger_;
        setup.plan = &plan_;
        setup.accounts = &accounts_;
        setup.channels = 4;
        setup.frames_per_integration = 4;
        setup.policy = policy;
        setup.stop = &stop_;
        setup.abort = &abort_;
        setup.workers = &workers_;
        ingest_.emplace(setup);
        thread_ = std::thread([this] { ingest_->run(tokens_); });
    }

    void write_frames(uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            writer_->begin();
            writer_->commit({index_, index_ * 64, 64, 0});
            ++index_;
        }
    }

    // Waits up to 2 s, far longer than any of ingest's own waits.
    template <typename Condition>
    static bool soon(Condition condition) {
        const int64_t deadline = monotonic_ns() + 2'000'000'000;
        while (!condition()) {
            if (monotonic_ns() > deadline) {
                return false;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return true;
    }

    // Finishes and retires every open block, as a worker and the collector would.
    uint64_t work_off() {
        uint64_t done = 0;
        while (const auto claim = ledger_->claim_oldest(0, 1)) {
            EXPECT_TRUE(ledger_->finish(*claim));
            ++done;
        }
        while (ledger_->oldest_open() < ledger_->opened()) {
            const uint64_t number = ledger_->oldest_open();
            if (ledger_->word(number).state == BlockState::ready) {
                break;  // ingest has opened it since
            }
            const BlockDescriptor block = ledger_->descriptor(number);
            const bool dropped = ledger_->word(number).state == BlockState::dropped;
            if (block.index_in_group == 1) {
                if (dropped) {
                    accounts_.group_dropped(block.own_frames, FrameDrop::overrun);
                } else {
                    accounts_.group_done(block.own_frames, {}, 1e9);
                }
            }
            if (dropped) {
                accounts_.block_dropped();
            } else {
                accounts_.block_done({});
            }
            ledger_->retire(number);
        }
        return done;
    }

    void TearDown() override {
        abort_ = true;
        if (thread_.joinable()) {
            thread_.join();
        }
        const auto books = accounts_.snapshot();
        EXPECT_TRUE(books.frames.close());
        EXPECT_TRUE(books.blocks.close());
    }

    Stream stream_;
    BlockPlan plan_;
    std::optional<Ring> ring_;
    std::optional<Ledger> ledger_;
    std::optional<RingWriter> writer_;
    Accounts accounts_;
    CountingTokens tokens_;
    std::atomic<bool> stop_{false};
    std::atomic<bool> abort_{false};
    std::atomic<uint32_t> workers_{1};
    std::optional<Ingest> ingest_;
    std::thread thread_;
    uint64_t index_ = 0;
};

TEST_F(IngestTest, FullGroupsBecomeBlocksAndTokensGoOut) {
    start(OverrunPolicy::block);
    write_frames(3);
    ASSERT_TRUE(soon([&] { return ledger_->opened() == 2; }));
    EXPECT_EQ(ledger_->descriptor(0).first_channel, 0U);
    EXPECT_EQ(ledger_->descriptor(1).first_channel, 2U);
    EXPECT_EQ(ledger_->descriptor(1).own_frames, 2U);
    EXPECT_TRUE(soon([&] { return tokens_.sent > 0; }));
}

TEST_F(IngestTest, TheEndOfTheRingFlushesTheLastGroupAndClosesTheLedger) {
    start(OverrunPolicy::block);
    write_frames(3);
    writer_->end();
    ASSERT_TRUE(soon([&] { return ledger_->closed(); }));
    EXPECT_EQ(ledger_->opened(), 4U);
    EXPECT_EQ(ledger_->descriptor(3).own_frames, 1U);
    work_off();
    thread_.join();
    EXPECT_EQ(accounts_.snapshot().frames.done, 3U);
}

TEST_F(IngestTest, AReadyBlockThatNobodyTakesGetsMoreTokens) {
    start(OverrunPolicy::block);
    write_frames(2);
    ASSERT_TRUE(soon([&] { return tokens_.sent > 0; }));
    const uint32_t before = tokens_.sent;
    EXPECT_TRUE(soon([&] { return tokens_.sent > before; }));
}

TEST_F(IngestTest, BlockingKeepsEverythingWhileTheLedgerIsFull) {
    start(OverrunPolicy::block);
    uint64_t written = 0;
    uint64_t done = 0;
    const int64_t deadline = monotonic_ns() + 5'000'000'000;
    while (written < 200 && monotonic_ns() < deadline) {
        if (writer_->wait_for_room(1'000'000)) {
            write_frames(1);
            ++written;
        } else {
            done += work_off();
            // As the collector does: what ingest needs first, then what open blocks do.
            uint64_t needed = ingest_->first_position_needed();
            if (ledger_->oldest_open() < ledger_->opened()) {
                needed = std::min(needed, ledger_->positions(ledger_->oldest_open()).front());
            }
            ring_->release_before(needed);
        }
    }
    writer_->end();
    ASSERT_TRUE(soon([&] {
        done += work_off();
        return ledger_->closed() && ledger_->oldest_open() == ledger_->opened();
    }));
    thread_.join();
    EXPECT_EQ(written, 200U);
    EXPECT_EQ(done, 200U);  // 100 groups of two blocks
    EXPECT_EQ(accounts_.snapshot().frames.done, 200U);
    EXPECT_EQ(accounts_.snapshot().frames.dropped_in_all(), 0U);
}

TEST_F(IngestTest, ALiveProducerThatOutrunsWorkersCostsOldFramesCountedAsOverrun) {
    start(OverrunPolicy::drop);
    for (int lap = 0; lap < 5; ++lap) {
        write_frames(slots);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_TRUE(soon([&] {
        // What nobody claims is dropped down to half a ring.
        return ledger_->word(ledger_->oldest_open()).state == BlockState::dropped;
    }));
    work_off();
    writer_->end();
    ASSERT_TRUE(soon([&] {
        work_off();
        return ledger_->closed() && ledger_->oldest_open() == ledger_->opened();
    }));
    thread_.join();
    const auto frames = accounts_.snapshot().frames;
    EXPECT_EQ(frames.in, 5 * slots);
    EXPECT_GT(frames.dropped[static_cast<size_t>(FrameDrop::overrun)], 2 * slots);
    EXPECT_EQ(frames.in_flight, 0U);
}

TEST_F(IngestTest, RefusedFramesAreCountedByReason) {
    start(OverrunPolicy::block);
    write_frames(2);
    index_ = 1;
    write_frames(1);  // frame 1 again
    index_ = 5;
    write_frames(1);  // 2, 3 and 4 are missing
    index_ = 2;
    write_frames(1);  // and one of them comes late
    writer_->end();
    ASSERT_TRUE(soon([&] {
        work_off();
        return ledger_->closed() && ledger_->oldest_open() == ledger_->opened();
    }));
    thread_.join();
    const auto frames = accounts_.snapshot().frames;
    EXPECT_EQ(frames.dropped[static_cast<size_t>(FrameDrop::repeated)], 1U);
    EXPECT_EQ(frames.dropped[static_cast<size_t>(FrameDrop::lost_by_source)], 3U);
    EXPECT_EQ(frames.dropped[static_cast<size_t>(FrameDrop::out_of_order)], 1U);
    EXPECT_EQ(frames.done, 3U);
    EXPECT_EQ(frames.in, 8U);
}

}  // namespace
}  // namespace echelle
