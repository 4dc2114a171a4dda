// Blocks with known values go in, packets come out: expected values are worked out by hand.
#include "coordinator/integrator.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace echelle {
namespace {

constexpr uint32_t bins = 3;  // nperseg 4

class Collected : public SpectrumSink {
  public:
    struct Spectrum {
        PacketHeader header;
        PacketTrailer trailer;
        std::vector<float> values;
    };
    void write(std::span<const std::byte> packet) override {
        PacketView view;
        ASSERT_EQ(decode_packet(packet, view), PacketError::none);
        Spectrum spectrum{view.header, view.trailer, {}};
        for (size_t i = 0; i < view.header.fft_size; ++i) {
            spectrum.values.push_back(view.value(i));
        }
        spectra.push_back(spectrum);
    }
    void finish() override {}
    std::vector<Spectrum> spectra;
};

class IntegratorTest : public testing::Test {
  protected:
    IntegratorTest() {
        stream_.geometry = {2, 100, SampleFormat::i16, Layout::channel_major};
        stream_.rate = {100, 1};
        welch_.nperseg = 4;
        welch_.noverlap = 0;
    }

    Integrator make(uint64_t frames_per_integration) {
        return Integrator(stream_, welch_, frames_per_integration, {&sink_});
    }

    // A block of both channels: channel c has `value` + c in every bin of every row.
    struct Part {
        BlockDescriptor block;
        uint32_t segments = 25;
        std::vector<float> rows{1};
        uint32_t worker = 0;
    };
    BlockResult result_of(const Part& part) {
        const auto values = static_cast<uint32_t>(part.rows.size() * bins);
        slot_.assign(BlockResult::bytes_needed(2, 64) / 64 + 1, {});
        const BlockResult result(std::as_writable_bytes(std::span(slot_)), 2, 64);
        const SpectrumLabels labels(stream_, welch_);
        result.header() = {};
        result.header().status = BlockStatus::computed;
        result.header().values = part.segments == 0 ? 0 : values;
        result.header().worker = part.worker;
        for (uint32_t channel = 0; channel < 2; ++channel) {
            ChannelSums sums;
            sums.sum_re = 10;
            sums.sum_squares = 400;
            sums.samples = 100;
            sums.segments = part.segments;
            result.sums(channel) = sums;
            if (part.segments == 0) {
                continue;
            }
            const auto packet = result.packet(channel, values);
            const auto data = packet_data(packet, values);
            for (size_t i = 0; i < values; ++i) {
                data[i] = part.rows[i / bins] + static_cast<float>(channel);
            }
            PacketTrailer trailer = labels.trailer(sums, part.block.first_sample, part.segments,
                                                   part.block.segments, 0);
            trailer.worker = part.worker;
            seal_packet_1_1(packet, labels.header(channel, part.block.first_sample, values),
                            trailer);
        }
        return result;
    }

    static BlockDescriptor block(uint64_t integration, bool first, bool last) {
        BlockDescriptor block;
        block.integration = integration;
        block.first_of_integration = first;
        block.last_of_integration = last;
        block.first_sample = integration * 200;
        block.own_frames = 1;
        block.own_samples = 100;
        block.segments = 25;
        block.channel_count = 2;
        block.blocks_in_group = 1;
        return block;
    }

    struct alignas(64) Line {
        std::byte bytes[64];
    };
    Stream stream_;
    WelchParameters welch_;
    Collected sink_;
    std::vector<Line> slot_;
};

TEST_F(IntegratorTest, AWholeIntegrationPassesThroughAndIsNumbered) {
    Integrator integrator = make(1);
    for (uint64_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(integrator.add(block(i, true, true), result_of({block(i, true, true)})));
    }
    integrator.finish();
    ASSERT_EQ(sink_.spectra.size(), 6U);
    EXPECT_EQ(sink_.spectra[4].header.channel_id, 0U);
    EXPECT_EQ(sink_.spectra[4].trailer.sequence, 2U);
    EXPECT_EQ(sink_.spectra[5].values, (std::vector<float>{2, 2, 2}));
    EXPECT_EQ(sink_.spectra[5].trailer.flags, 0);
}

TEST_F(IntegratorTest, MeansAreWeightedBySegments) {
    Integrator integrator = make(2);
    integrator.add(block(0, true, false), result_of({block(0, true, false), 10, {1}}));
    integrator.add(block(0, false, true), result_of({block(0, false, true), 30, {5}, 1}));
    ASSERT_EQ(sink_.spectra.size(), 2U);
    EXPECT_EQ(sink_.spectra[0].values, (std::vector<float>{4, 4, 4}));  // (10*1 + 30*5) / 40
    EXPECT_EQ(sink_.spectra[0].trailer.segments_averaged, 40U);
    EXPECT_EQ(sink_.spectra[0].trailer.worker, worker_unknown);  // parts of two workers
    EXPECT_FLOAT_EQ(sink_.spectra[0].trailer.mean, 0.1F);        // 20 / 200 samples
    EXPECT_FLOAT_EQ(sink_.spectra[0].trailer.rms, 2.0F);         // sqrt(800 / 200)
}

TEST_F(IntegratorTest, MaximaAreTheLargestValues) {
    welch_.average_mode = AverageMode::max;
    Integrator integrator = make(2);
    integrator.add(block(0, true, false), result_of({block(0, true, false), 10, {7}}));
    integrator.add(block(0, false, true), result_of({block(0, false, true), 30, {5}}));
    EXPECT_EQ(sink_.spectra[0].values, (std::vector<float>{7, 7, 7}));
}

TEST_F(IntegratorTest, MediansAreOfAllSegmentsAndDividedByTheirBias) {
    welch_.average_mode = AverageMode::median;
    Integrator integrator = make(0);
    integrator.add(block(0, true, false), result_of({block(0, true, false), 3, {9, 1, 2}}));
    integrator.add(block(0, false, false), result_of({block(0, false, false), 2, {3, 100}}));
    integrator.finish();
    // median(9, 1, 2, 3, 100) = 3; bias for 5 = 1 + 1/3 - 1/2 + 1/5 - 1/4.
    const double bias = 1 + 1.0 / 3 - 1.0 / 2 + 1.0 / 5 - 1.0 / 4;
    EXPECT_FLOAT_EQ(sink_.spectra[0].values[1], static_cast<float>(3 / bias));
    EXPECT_EQ(sink_.spectra[0].trailer.flags & PacketFlag::partial, 0);  // "all" is what was asked
}

TEST_F(IntegratorTest, AMissingPartMakesTheSpectrumIncompleteAndTheNextOneSaysGap) {
    Integrator integrator = make(2);
    integrator.add(block(0, true, false), result_of({block(0, true, false)}));
    integrator.add_missing(block(0, false, true));
    ASSERT_EQ(sink_.spectra.size(), 2U);
    EXPECT_EQ(sink_.spectra[0].trailer.segments_averaged, 25U);
    EXPECT_EQ(sink_.spectra[0].trailer.segments_expected, 50U);
    EXPECT_EQ(sink_.spectra[0].trailer.flags, PacketFlag::incomplete | PacketFlag::gap_before);
    EXPECT_EQ(integrator.books().incomplete, 2U);
}

TEST_F(IntegratorTest, FramesLostAtTheEndOfAnIntegrationAreExpectedThere) {
    Integrator integrator = make(2);
    integrator.add(block(0, true, false), result_of({block(0, true, false)}));
    BlockDescriptor next = block(1, true, false);
    next.gap_before = true;
    next.segments_lost = 25;
    integrator.add(next, result_of({next}));
    ASSERT_EQ(sink_.spectra.size(), 2U);
    EXPECT_EQ(sink_.spectra[0].trailer.segments_expected, 50U);
    EXPECT_NE(sink_.spectra[0].trailer.flags & PacketFlag::incomplete, 0);
    integrator.finish();  // the stream ends in the middle of the second integration
    ASSERT_EQ(sink_.spectra.size(), 4U);
    EXPECT_NE(sink_.spectra[2].trailer.flags & PacketFlag::gap_before, 0);
    EXPECT_NE(sink_.spectra[2].trailer.flags & PacketFlag::partial, 0);
}

TEST_F(IntegratorTest, AFrameCutShortByAGapMakesItsSpectrumIncompleteAndByTheEndPartial) {
    Integrator integrator = make(2);
    BlockDescriptor cut = block(0, true, false);
    cut.own_samples = 60;
    cut.segments = 15;
    cut.segments_cut = 10;
    integrator.add(cut, result_of({cut, 15}));
    integrator.add(block(0, false, true), result_of({block(0, false, true)}));
    BlockDescriptor last = block(1, true, false);
    last.own_samples = 60;
    last.segments = 15;
    last.ends_stream = true;
    integrator.add(last, result_of({last, 15}));
    integrator.finish();
    ASSERT_EQ(sink_.spectra.size(), 4U);
    EXPECT_EQ(sink_.spectra[0].trailer.segments_averaged, 40U);
    EXPECT_EQ(sink_.spectra[0].trailer.segments_expected, 50U);
    EXPECT_EQ(sink_.spectra[0].trailer.flags, PacketFlag::incomplete);
    EXPECT_EQ(sink_.spectra[2].trailer.flags & PacketFlag::partial, PacketFlag::partial);
}

TEST_F(IntegratorTest, WholeIntegrationsThatAreMissingAreCountedAndTold) {
    Integrator integrator = make(1);
    integrator.add(block(0, true, true), result_of({block(0, true, true)}));
    integrator.add_missing(block(1, true, true));
    integrator.add(block(2, true, true), result_of({block(2, true, true)}));
    ASSERT_EQ(sink_.spectra.size(), 4U);
    EXPECT_EQ(integrator.books().empty, 2U);
    EXPECT_EQ(sink_.spectra[2].trailer.flags, PacketFlag::gap_before);
    EXPECT_EQ(sink_.spectra[2].trailer.sequence, 1U);  // counts spectra, not integrations
}

TEST_F(IntegratorTest, IntegrationsWithoutASegmentGiveNoSpectrum) {
    Integrator integrator = make(1);
    BlockDescriptor empty = block(0, true, true);
    empty.segments = 0;
    EXPECT_TRUE(integrator.add(empty, result_of({empty, 0})));
    integrator.finish();
    EXPECT_TRUE(sink_.spectra.empty());
    EXPECT_EQ(integrator.books().empty, 2U);
}

TEST_F(IntegratorTest, AResultWhoseChecksumIsWrongIsNotUsed) {
    Integrator integrator = make(2);
    integrator.add(block(0, true, false), result_of({block(0, true, false)}));
    const BlockResult broken = result_of({block(0, false, true), 25, {1000}});
    broken.packet(1, bins)[packet_header_bytes] ^= std::byte{1};
    EXPECT_FALSE(integrator.add(block(0, false, true), broken));
    ASSERT_EQ(sink_.spectra.size(), 2U);
    EXPECT_EQ(sink_.spectra[0].values[0], 1);
    EXPECT_EQ(integrator.books().crc_errors, 1U);
    EXPECT_NE(sink_.spectra[0].trailer.flags & PacketFlag::incomplete, 0);
}

}  // namespace
}  // namespace echelle
