#include "worker/worker_loop.hpp"

#include <memory>
#include <vector>

#include <poll.h>

#include "common/clock.hpp"
#include "common/fault_point.hpp"
#include "common/topology.hpp"
#include "worker/block_result.hpp"
#include "worker/spectrum_labels.hpp"
#include "worker/welch_engine.hpp"

namespace echelle {
namespace {

// A lost token delays a worker by this much at most, and a worker outlives its coordinator by it.
constexpr int64_t longest_wait_ns = 100'000'000;

BlockReduction reduction_for(AverageMode mode, const BlockDescriptor& block) {
    switch (mode) {
        case AverageMode::mean:
            return BlockReduction::mean;
        case AverageMode::max:
            return BlockReduction::maximum;
        case AverageMode::median:
            break;
    }
    const bool whole = block.first_of_integration && block.last_of_integration;
    return whole ? BlockReduction::median : BlockReduction::segments;
}

class Worker {
  public:
    Worker(const WorkerSetup& setup, const WorkerIdentity& identity)
        : setup_(setup),
          identity_(identity),
          record_(setup.ledger->worker(identity.id)),
          labels_(setup.stream, setup.welch),
          engine_(setup.stream, setup.welch, *setup.plans, setup.most_channels, setup.most_frames),
          wakeups_(make_wakeups(setup.notify, *setup.ledger, setup.endpoints)),
          tokens_(wakeups_->token_receiver()),
          notices_(wakeups_->notice_sender()) {
        frames_.reserve(setup.most_frames);
        values_.reserve(setup.most_channels);
    }

    void run() {
        if (!setup_.ledger->has_begun()) {
            const int64_t deadline_ns = monotonic_ns() + setup_.touch_ns;
            setup_.ledger->touch_pages(deadline_ns);
            setup_.ring->touch_pages(deadline_ns);
        }
        while (true) {
            setup_.ledger->look_for_work(identity_.id);
            record_.looked_ns.store(monotonic_ns(), std::memory_order_relaxed);
            tokens_->prepare();
            const uint64_t claims = claim_until_none_is_left();
            if (should_leave()) {
                break;
            }
            if (claims > 0) {
                continue;  // it has said that it works: it says that it looks, and looks, first
            }
            if (coordinator_is_gone()) {
                break;
            }
            tokens_->wait(setup_.coordinator_end, longest_wait_ns);
        }
        set_stage(WorkerStage::leaving);
    }

  private:
    uint64_t claim_until_none_is_left() {
        uint64_t claims = 0;
        while (!should_leave() && !setup_.ledger->paused()) {
            const auto claim = setup_.ledger->claim_oldest(identity_.id, identity_.incarnation);
            if (!claim) {
                break;
            }
            ECHELLE_FAULT_POINT("worker.claimed");
            ++claims;
            set_stage(WorkerStage::computing);
            work_on(*claim);
        }
        return claims;
    }

    // All workers at the end of a run, or this one when there are to be fewer. A run's end is only
    // told when no block is left, so what was claimed is always finished first.
    bool should_leave() const {
        return setup_.ledger->workers_should_leave() ||
               record_.leave.load(std::memory_order_relaxed) != 0;
    }

    void work_on(const Claim& claim) {
        const BlockDescriptor& block = setup_.ledger->descriptor(claim.number);
        const BlockResult result(setup_.ledger->result(claim.number), setup_.most_channels,
                                 setup_.most_values);
        BlockResultHeader header;
        header.worker = identity_.id;
        header.claimed_ns = monotonic_ns();
        const int64_t cpu_before_ns = thread_cpu_ns();
        header.status = compute(claim.number, block, result, header.values);
        header.cpu_ns = thread_cpu_ns() - cpu_before_ns;
        header.done_ns = monotonic_ns();
        result.header() = header;
        ECHELLE_FAULT_POINT("worker.result_written");

        if (setup_.ledger->finish(claim)) {
            record_.blocks.fetch_add(1, std::memory_order_relaxed);
        } else {
            record_.duplicates.fetch_add(1, std::memory_order_relaxed);
        }
        ECHELLE_FAULT_POINT("worker.done");
        // One that never runs out of work looks for it here.
        record_.looked_ns.store(header.done_ns, std::memory_order_relaxed);
        record_.busy_ns.fetch_add(header.done_ns - header.claimed_ns, std::memory_order_relaxed);
        record_.cpu_ns.fetch_add(header.cpu_ns, std::memory_order_relaxed);
        if (setup_.ledger->is_awaited(claim.number)) {
            notices_->send(claim.number);
        }
        ECHELLE_FAULT_POINT("worker.noticed");
    }

    BlockStatus compute(uint64_t number, const BlockDescriptor& block, const BlockResult& result,
                        uint32_t& values) {
        const auto positions = setup_.ledger->positions(number);
        for (const uint64_t position : positions) {
            if (!setup_.ring->holds(position)) {
                return BlockStatus::overwritten;
            }
        }
        const BlockInput input = input_for(block, positions);
        const BlockReduction reduction = reduction_for(setup_.welch.average_mode, block);
        const uint64_t segments = engine_.segments_in(input);
        const uint64_t rows = segments > 0 && reduction != BlockReduction::segments ? 1 : segments;
        values = static_cast<uint32_t>(rows * labels_.bins());
        values_.clear();
        for (uint32_t i = 0; i < block.channel_count; ++i) {
            values_.push_back(packet_data(result.packet(i, values), values).data());
        }
        ECHELLE_FAULT_POINT("worker.computing");
        ECHELLE_BLOCK_FAULT_POINT(number);
        engine_.compute(input, reduction, values_, {&result.sums(0), block.channel_count});
        for (const uint64_t position : positions) {
            if (!setup_.ring->holds_after_reading(position)) {
                return BlockStatus::overwritten;
            }
        }
        if (values > 0) {
            seal(block, result, values);
        }
        return BlockStatus::computed;
    }

    BlockInput input_for(const BlockDescriptor& block, std::span<const uint64_t> positions) {
        const uint32_t samples = setup_.stream.geometry.samples;
        frames_.clear();
        for (const uint64_t position : positions) {
            frames_.push_back({setup_.ring->frame(position).data(), samples});
        }
        // Only the last frame of a stretch may be partial. Taken from the ledger, not from the
        // ring's slot, which an outside producer could change under our feet.
        frames_.back().valid_samples =
            static_cast<uint32_t>(block.own_samples - uint64_t{block.own_frames - 1} * samples);
        BlockInput input;
        input.frames = frames_;
        input.own_frames = block.own_frames;
        input.first_sample = block.grid_sample;
        input.first_channel = block.first_channel;
        input.channel_count = block.channel_count;
        return input;
    }

    void seal(const BlockDescriptor& block, const BlockResult& result, uint32_t values) {
        const bool whole = block.first_of_integration && block.last_of_integration;
        for (uint32_t i = 0; i < block.channel_count; ++i) {
            const ChannelSums& sums = result.sums(i);
            PacketTrailer trailer = labels_.trailer(
                sums, block.first_sample, sums.segments, block.segments + block.segments_cut,
                whole ? uint16_t{0} : uint16_t{PacketFlag::partial});
            trailer.worker = identity_.id;
            seal_packet_1_1(result.packet(i, values),
                            labels_.header(block.first_channel + i, block.first_sample, values),
                            trailer);
        }
    }

    bool coordinator_is_gone() const {
        pollfd descriptor{setup_.coordinator_end, POLLIN, 0};
        return poll(&descriptor, 1, 0) > 0;
    }

    void set_stage(WorkerStage stage) {
        record_.stage.store(static_cast<uint32_t>(stage), std::memory_order_relaxed);
    }

    const WorkerSetup& setup_;
    const WorkerIdentity identity_;
    WorkerRecord& record_;
    SpectrumLabels labels_;
    WelchEngine engine_;
    std::unique_ptr<Wakeups> wakeups_;
    std::unique_ptr<TokenReceiver> tokens_;
    std::unique_ptr<NoticeSender> notices_;
    std::vector<FrameView> frames_;
    std::vector<float*> values_;
};

}  // namespace

void run_worker(const WorkerSetup& setup, const WorkerIdentity& identity) {
    // Bound before anything is allocated or any ZeroMQ thread is made: memory is then near, and
    // the IO thread inherits the CPU.
    ECHELLE_FAULT_INCARNATION(identity.incarnation);
    ECHELLE_FAULT_POINT("worker.starting");
    WorkerRecord& record = setup.ledger->worker(identity.id);
    const auto bound = identity.cpu ? bind_this_thread(*identity.cpu) : std::nullopt;
    record.cpu.store(bound ? *bound + 1 : 0, std::memory_order_relaxed);
    Worker(setup, identity).run();
}

}  // namespace echelle
