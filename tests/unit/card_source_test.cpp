// The parts of the xdma: source, and the whole of it on FIFOs, files and a stub in read()'s place.
// What needs a device that misbehaves is in tests/fault/card_faults_test.cpp.
#include "coordinator/sources/card_source.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "common/clock.hpp"
#include "coordinator/sources/card_reader.hpp"
#include "tests/unit/card_bytes.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

using testing::ElementsAre;

// ---- the reframer

struct Reframed {
    std::vector<uint64_t> sequences;
    std::vector<Reframer::Event> losses;
    ReframerCounts counts;
};

// Feeds `bytes` in pieces of `piece` bytes.
Reframed reframe(const std::string& bytes, size_t piece,
                 const CardFrameHeader& shape = small_card_header(0)) {
    Reframed result;
    Reframer reframer(shape);
    std::vector<std::byte> place(reframer.wire_bytes());
    reframer.assemble_in(place);
    for (size_t at = 0; at < bytes.size();) {
        const size_t count = std::min({piece, bytes.size() - at, reframer.rest().size()});
        std::memcpy(reframer.rest().data(), bytes.data() + at, count);
        at += count;
        reframer.filled(count);
        for (;;) {
            const Reframer::Event event = reframer.advance();
            if (event == Reframer::Event::more) {
                break;
            }
            if (event != Reframer::Event::frame) {
                result.losses.push_back(event);
                continue;
            }
            result.sequences.push_back(reframer.frame().sequence);
            const size_t header = shape.header_bytes;
            EXPECT_EQ(place[header], static_cast<std::byte>(reframer.frame().sequence));
            reframer.next();
            reframer.assemble_in(place);
            break;
        }
    }
    result.counts = reframer.counts();
    return result;
}

std::string frames_of(std::initializer_list<uint64_t> sequences) {
    std::string bytes;
    for (const uint64_t sequence : sequences) {
        bytes += small_card_frame(sequence);
    }
    return bytes;
}

std::string flipped(std::string bytes, size_t at) {
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    return bytes;
}

class ReframerPieces : public testing::TestWithParam<size_t> {};
INSTANTIATE_TEST_SUITE_P(Sizes, ReframerPieces, testing::Values(1, 7, 63, 64, 65, 191, 192, 1000));

TEST_P(ReframerPieces, WholeFramesInAnyPieces) {
    const Reframed result = reframe(frames_of({5, 6, 7}), GetParam());
    EXPECT_THAT(result.sequences, ElementsAre(5, 6, 7));
    EXPECT_TRUE(result.losses.empty());
    EXPECT_EQ(result.counts.skipped_bytes, 0U);
    EXPECT_EQ(result.counts.resynchronised, 0U);
}

TEST_P(ReframerPieces, GarbageIsSkippedToTheByte) {
    const std::string noise = "ECHECHFECHF" + std::string(100, 'E');
    const Reframed result = reframe(frames_of({1}) + noise + frames_of({2, 3}), GetParam());
    EXPECT_THAT(result.sequences, ElementsAre(1, 2, 3));
    EXPECT_EQ(result.counts.skipped_bytes, noise.size());
    EXPECT_EQ(result.counts.resynchronised, 1U);
}

TEST_P(ReframerPieces, ATornFrameCostsItselfAlone) {
    for (const size_t missing : {size_t{1}, size_t{2}, size_t{64}, size_t{150}}) {
        const std::string torn = small_card_frame(2).erase(30 + 34, std::min<size_t>(missing, 120));
        const Reframed result = reframe(frames_of({1}) + torn + frames_of({3, 4}), GetParam());
        EXPECT_THAT(result.sequences, ElementsAre(1, 3, 4));
        EXPECT_THAT(result.losses, ElementsAre(Reframer::Event::torn));
        EXPECT_EQ(result.counts.skipped_bytes, torn.size());
    }
}

TEST_P(ReframerPieces, DamageIsFoundAndNamed) {
    const Reframed data =
        reframe(frames_of({1}) + flipped(small_card_frame(2), 100) + frames_of({3}), GetParam());
    EXPECT_THAT(data.sequences, ElementsAre(1, 3));
    EXPECT_THAT(data.losses, ElementsAre(Reframer::Event::bad_data));
    EXPECT_EQ(data.counts.bad_data_crc, 1U);
    EXPECT_EQ(data.counts.resynchronised, 0U);

    const Reframed header =
        reframe(frames_of({1}) + flipped(small_card_frame(2), 33) + frames_of({3}), GetParam());
    EXPECT_THAT(header.sequences, ElementsAre(1, 3));
    EXPECT_THAT(header.losses, ElementsAre(Reframer::Event::bad_header));
    EXPECT_EQ(header.counts.bad_header_crc, 1U);
}

TEST_P(ReframerPieces, AnotherGeometryIsNotTakenForSamples) {
    CardFrameHeader wider = small_card_header(2);
    wider.geometry.channels = 4;
    const Reframed result =
        reframe(frames_of({1}) + card_frame_of(wider) + frames_of({3}), GetParam());
    EXPECT_THAT(result.sequences, ElementsAre(1, 3));
    EXPECT_EQ(result.counts.other_shape, 1U);
}

TEST_P(ReframerPieces, WithoutChecksumsTheNextHeaderInsideTellsOfATornFrame) {
    const auto plain = [](uint64_t sequence) {
        CardFrameHeader header = small_card_header(sequence);
        header.flags = 0;
        return card_frame_of(header);
    };
    CardFrameHeader shape = small_card_header(0);
    shape.flags = 0;
    // In one read, a whole frame of bytes is believed: docs/capture-cards.md says so.
    const Reframed result = reframe(plain(1) + plain(2).erase(64, 64) + plain(3) + plain(4),
                                    std::min<size_t>(GetParam(), 100), shape);
    EXPECT_THAT(result.sequences, ElementsAre(1, 3, 4));
    EXPECT_EQ(result.counts.without_checksum, 3U);
    EXPECT_EQ(result.counts.torn, 1U);
}

// ---- the numbering

FrameStamp placed(CardNumbering& numbering, const CardFrameHeader& header, int64_t now_ns = 0) {
    FrameStamp stamp;
    EXPECT_EQ(numbering.place(header, now_ns, stamp), CardNumbering::Verdict::good);
    return stamp;
}

TEST(CardNumbering, EachMissingFrameHasOneCause) {
    CardNumbering numbering({1'000'000, 1});
    EXPECT_EQ(placed(numbering, small_card_header(100)).frame_index, 0U);
    numbering.lose(CardLoss::bad_data);
    numbering.lose(CardLoss::torn);
    const FrameStamp after = placed(numbering, small_card_header(106));
    EXPECT_EQ(after.frame_index, 6U);
    EXPECT_EQ(after.first_sample, 1696U);
    EXPECT_EQ(after.flags, frame_gap_before);
    CardFrameHeader overflowed = small_card_header(109);
    overflowed.flags |= card_overflow;
    placed(numbering, overflowed);
    numbering.device_failed();
    placed(numbering, small_card_header(110));  // nothing was lost after all
    numbering.device_failed();
    placed(numbering, small_card_header(115));
    numbering.lose(CardLoss::bad_header);  // garbage between two frames: no loss
    placed(numbering, small_card_header(116));
    //                                       data torn header device overflow unexplained
    EXPECT_THAT(numbering.lost(), ElementsAre(1, 1, 0, 4, 2, 3));
    EXPECT_EQ(numbering.placed(), 6U);
}

TEST(CardNumbering, OldFramesAreNotPlaced) {
    CardNumbering numbering({1'000'000, 1});
    FrameStamp stamp;
    placed(numbering, small_card_header(10));
    EXPECT_EQ(numbering.place(small_card_header(10), 0, stamp), CardNumbering::Verdict::repeated);
    EXPECT_EQ(numbering.place(small_card_header(3), 0, stamp), CardNumbering::Verdict::stale);
    EXPECT_EQ(placed(numbering, small_card_header(11)).flags, 0U);
}

TEST(CardNumbering, ACardThatBeginsAnewGoesOnByTheClock) {
    CardNumbering numbering({1'000'000, 1});
    placed(numbering, small_card_header(1000), 5'000'000'000);
    numbering.lose(CardLoss::torn);
    CardFrameHeader anew = small_card_header(0);
    anew.stream = 1;
    const FrameStamp stamp = placed(numbering, anew, 5'002'000'000);
    EXPECT_EQ(stamp.frame_index, 2U);  // one was known to be lost
    EXPECT_EQ(stamp.first_sample, 16'016U + 2000);
    EXPECT_EQ(stamp.flags, frame_gap_before);
    anew.sequence = 1;
    anew.sample_index = 16;
    EXPECT_EQ(placed(numbering, anew).first_sample, 16'016U + 2016);
    EXPECT_EQ(numbering.restarts(), 1U);
    // So does one whose counters jump further than any loss.
    anew.sequence = uint64_t{1} << 40;
    anew.sample_index = 32;
    EXPECT_EQ(placed(numbering, anew).frame_index, 4U);
    anew.sequence += 1;
    anew.sample_index = 0;
    EXPECT_EQ(placed(numbering, anew).frame_index, 5U);
    EXPECT_EQ(numbering.restarts(), 3U);
}

// ---- the drivers' words

TEST(DeviceTrouble, ErrnosOfTheDrivers) {
    EXPECT_EQ(trouble_of_errno(512), DeviceTrouble::time_out);
    EXPECT_EQ(trouble_of_errno(ETIMEDOUT), DeviceTrouble::time_out);
    EXPECT_EQ(trouble_of_errno(EBUSY), DeviceTrouble::busy);
    EXPECT_EQ(trouble_of_errno(EINVAL), DeviceTrouble::misaligned);
    EXPECT_EQ(trouble_of_errno(EIO), DeviceTrouble::engine_error);
    EXPECT_EQ(trouble_of_errno(ENODEV), DeviceTrouble::device_lost);
    EXPECT_EQ(trouble_of_errno(EACCES), DeviceTrouble::not_permitted);
    EXPECT_EQ(trouble_of_errno(ENOSPC), DeviceTrouble::other);
    for (size_t i = 0; i < device_troubles; ++i) {
        const auto trouble = static_cast<DeviceTrouble>(i);
        EXPECT_GT(explain(trouble, 0).size(), 20U) << name_of(trouble);
        EXPECT_EQ(needs_reopening(trouble), trouble != DeviceTrouble::time_out);
    }
    EXPECT_NE(explain(DeviceTrouble::time_out, 512).find("512"), std::string::npos);
}

// ---- the card's node

TEST(DeviceFile, TheNodeIsTheOneOfTheCardsPciFunction) {
    namespace fs = std::filesystem;
    const TemporaryFolder sys;
    const std::string function = sys.file("devices/pci0000:16/0000:17:00.0");
    fs::create_directories(function + "/xdma/xdma0_c2h_0");
    fs::create_directories(sys.file("devices/virtual/mem/null"));
    fs::create_directories(sys.file("dev/char"));
    fs::create_directory_symlink(function + "/xdma/xdma0_c2h_0", sys.file("dev/char/239:36"));
    fs::create_directory_symlink(sys.file("devices/virtual/mem/null"), sys.file("dev/char/1:3"));
    EXPECT_EQ(node_of_device(makedev(239, 36), sys.file("")), std::nullopt);
    sys.write("devices/pci0000:16/0000:17:00.0/numa_node", "-1\n");
    EXPECT_EQ(node_of_device(makedev(239, 36), sys.file("")), std::nullopt);
    sys.write("devices/pci0000:16/0000:17:00.0/numa_node", "3\n");
    EXPECT_EQ(node_of_device(makedev(239, 36), sys.file("")), 3U);
    EXPECT_EQ(node_of_device(makedev(1, 3), sys.file("")), std::nullopt);
    EXPECT_EQ(node_of_device(makedev(9, 9), sys.file("")), std::nullopt);
    EXPECT_FALSE(bind_this_thread_to_node(12345));
}

// ---- the whole source

class CardSourceTest : public testing::Test {
  protected:
    std::unique_ptr<Source> open(const std::string& path, const std::string& keys = "",
                                 const StreamOptions& options = {}) const {
        return open_card_source(SourceUri::parse("xdma:" + path + keys), options);
    }
    std::string message(const std::string& path, const std::string& keys = "",
                        const StreamOptions& options = {}) const {
        return usage_error([&] { open(path, keys, options); });
    }

    const TemporaryFolder folder_;
};

TEST_F(CardSourceTest, AFileOfFramesSaysWhatItHolds) {
    CardFrameHeader first = small_card_header(1000);
    first.flags |= card_time_is_unix;
    first.time_ns = 1'700'000'000'016'000'000;
    const auto source = open(folder_.write(
        "frames", "noise" + card_frame_of(first) + small_card_frame(1001) + small_card_frame(1004) +
                      small_card_frame(1005).substr(0, 100)));
    EXPECT_EQ(source->stream().geometry, first.geometry);
    EXPECT_EQ(source->stream().rate, (Rational{1'000'000, 1}));
    EXPECT_EQ(source->stream().epoch_ns, 1'700'000'000'000'000'000);
    EXPECT_EQ(source->default_policy(), OverrunPolicy::block);
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0].first_sample, 16'000U);
    EXPECT_EQ(frames[2].frame_index, 4U);
    EXPECT_EQ(frames[2].flags, frame_gap_before);
    EXPECT_EQ(frames[2].values[31], static_cast<int16_t>(1004 % 256 * 257));
    const nlohmann::json facts = source->facts();
    EXPECT_EQ(facts["frames"], 3);
    EXPECT_EQ(facts["lost"], (nlohmann::json{{"unexplained", 2}}));
    EXPECT_EQ(facts["framing"]["skipped_bytes"], 5 + 100);
    EXPECT_EQ(facts["state"], "ended");
    EXPECT_STREQ(source->facts_name(), "source");
}

TEST_F(CardSourceTest, WhatTheHeaderSaysCannotBeContradicted) {
    const std::string path = folder_.write("frames", frames_of({0, 1}));
    EXPECT_NO_THROW(open(path, "?channels=2&samples=16&rate=1e6&format=i16&layout=sample-major"));
    expect_mentions(message(path, "?channels=4"), {"4", "2", "frames"});
    expect_mentions(message(path, "?samples=32"), {"32", "16"});
    expect_mentions(message(path, "?rate=2e6"), {"2000000", "1000000"});
    StreamOptions options;
    options.format = SampleFormat::ci16;
    expect_mentions(message(path, "", options), {"ci16", "i16"});
}

TEST_F(CardSourceTest, WrongUsageIsRefusedInWords) {
    const std::string frames = folder_.write("frames", frames_of({0}));
    expect_mentions(message(""), {"names no device"});
    expect_mentions(message(frames, "?tlast=maybe"), {"tlast=maybe", "yes or no"});
    expect_mentions(message(frames, "?header=gzip"), {"header=gzip", "none"});
    expect_mentions(message(frames, "?timeout=0"), {"timeout=0", "seconds"});
    expect_mentions(message(frames, "?speed=9"), {"speed"});
    expect_mentions(message(folder_.file("absent")), {"absent", "No such file"});
    expect_mentions(message(folder_.file("")), {"no character device"});
    expect_mentions(message(folder_.write("text", std::string(5000, 'x'))),
                    {"ends without a frame", "5000 bytes", "header=none"});
    expect_mentions(message("/dev/null", "?timeout=0.1"), {"sends no frames", "0.1 s"});
    expect_mentions(message(frames, "?header=none&rate=1"), {"header=none", "--channels"});
    expect_mentions(message(frames, "?header=none&channels=1"), {"header=none", "--rate"});
    CardFrameHeader no_rate = small_card_header(0);
    no_rate.rate_hz = 0;
    const std::string silent = folder_.write("silent", card_frame_of(no_rate));
    expect_mentions(message(silent), {"sample rate", "rate="});
    EXPECT_EQ(open(silent, "?rate=200/3")->stream().rate, (Rational{200, 3}));
}

TEST_F(CardSourceTest, AFifoWaitsForItsNextWriter) {
    const std::string path = folder_.file("fifo");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const auto write = [&path](const std::string& bytes) {
        const FileDescriptor fifo(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        ASSERT_EQ(::write(fifo.get(), bytes.data(), bytes.size()),
                  static_cast<ssize_t>(bytes.size()));
    };
    std::thread writer([&] {
        write(frames_of({0, 1}) + small_card_frame(2).substr(0, 100));  // dies amid a frame
    });
    const auto source = open(path, "?timeout=20");
    writer.join();
    Ring ring = Ring::anonymous(source->stream(), 8, source->ring_margin());
    std::atomic<bool> stop{false};
    std::thread run([&] {
        RingWriter ring_writer(ring);
        source->run(ring_writer, OverrunPolicy::block, stop);
        ring_writer.end();
    });
    EXPECT_TRUE(ring.wait_for_frame(1, 20'000'000'000));
    const int64_t deadline = monotonic_ns() + 20'000'000'000;
    while (source->facts()["reopened"] == 0 && monotonic_ns() < deadline) {
        usleep(1000);
    }
    write(frames_of({4, 5}));
    EXPECT_TRUE(ring.wait_for_frame(3, 20'000'000'000));
    stop = true;
    run.join();
    EXPECT_EQ(ring.slot(2).frame_index, 4U);
    EXPECT_EQ(ring.frame(3)[0], 5 * 257);
    EXPECT_EQ(source->facts()["lost"], (nlohmann::json{{"device", 2}}));
}

TEST_F(CardSourceTest, AnEndedFifoIsTheEndWithoutReopening) {
    const std::string path = folder_.file("fifo");
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    std::thread writer([&path] {
        const FileDescriptor fifo(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
        const std::string bytes = frames_of({0, 1, 2});
        EXPECT_EQ(::write(fifo.get(), bytes.data(), bytes.size()), 576);
    });
    const auto source = open(path, "?timeout=20&reopen=no");
    EXPECT_EQ(play(*source).size(), 3U);
    writer.join();
}

TEST_F(CardSourceTest, SamplesWithoutHeadersAreCounted) {
    const auto source = open(folder_.write("samples", little_endian({1, 2, 3, 4, 5, 6, 7})),
                             "?header=none&channels=2&samples=1&rate=1000");
    expect_mentions(source->describe(), {"loss can't be seen"});
    const std::vector<PlayedFrame> frames = play(*source);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[2].first_sample, 2U);
    EXPECT_THAT(frames[2].values, ElementsAre(5, 6));
    EXPECT_EQ(source->facts()["framing"]["skipped_bytes"], 2);
}

// What a driver's stub did: it said that it had read more than there was room for.
TEST_F(CardSourceTest, DmaIpDrivers189ACountLargerThanAskedIsAFault) {
    CardReaderOptions options;
    options.path = folder_.write("node", "");  // no size: a device
    options.read_call = [sequence = uint64_t{0}, pending = std::string()](
                            int, void* bytes, size_t count) mutable -> ssize_t {
        if (sequence == 3) {
            ++sequence;
            std::memset(bytes, 0x55, count);
            return static_cast<ssize_t>(count) + 64;
        }
        if (pending.empty()) {
            pending = small_card_frame(sequence++);
        }
        const size_t given = std::min(count, pending.size());
        std::memcpy(bytes, pending.data(), given);
        pending.erase(0, given);
        return static_cast<ssize_t>(given);
    };
    const auto reader = std::make_shared<CardReader>(options);
    reader->open();
    Stream stream;
    stream.geometry = reader->first_header().geometry;
    stream.rate = {1'000'000, 1};
    Ring ring = Ring::anonymous(stream, 64, {64, 64});
    std::atomic<bool> stop{false};
    std::thread run([&] {
        RingWriter writer(ring);
        reader->read_into(writer, stream, true, stop);
    });
    EXPECT_TRUE(ring.wait_for_frame(9, 20'000'000'000));
    stop = true;
    run.join();
    EXPECT_EQ(ring.slot(2).frame_index, 2U);
    EXPECT_EQ(ring.slot(3).frame_index, 4U);
    EXPECT_EQ(ring.slot(3).flags, frame_gap_before);
    const CardCounts counts = reader->counts();
    EXPECT_EQ(counts.troubles[static_cast<size_t>(DeviceTrouble::impossible_count)], 1U);
    EXPECT_EQ(counts.lost[static_cast<size_t>(CardLoss::device)], 1U);
    EXPECT_GE(counts.reopened, 1U);
}

}  // namespace
}  // namespace echelle
