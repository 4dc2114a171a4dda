#include "coordinator/sources/digital_rf_source.hpp"

#include <filesystem>

#include "coordinator/sources/digital_rf_index.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

std::vector<SamplePiece> pieces_of(const std::vector<DigitalRfIndexRow>& index, uint64_t rows) {
    PieceList pieces("channel");
    append_digital_rf_file(index, rows, 0, "rf.h5", pieces);
    return pieces.take();
}

// digital_rf issues 4, 60 and 85: the index alone says where samples are.
TEST(DigitalRfIndex, AJumpIsAGapOfThatManySamples) {
    const std::vector<SamplePiece> pieces = pieces_of({{1000, 0}, {1010, 4}, {1016, 10}}, 12);
    ASSERT_EQ(pieces.size(), 3U);
    EXPECT_EQ(pieces[0], (SamplePiece{.offset = 0, .samples = 4}));
    EXPECT_EQ(pieces[1],
              (SamplePiece{.offset = 4, .samples = 6, .gap_before = true, .samples_missing = 6}));
    EXPECT_EQ(pieces[2], (SamplePiece{.offset = 10, .samples = 2}));
}

TEST(DigitalRfIndex, FilesFollowOneAnother) {
    PieceList pieces("channel");
    const DigitalRfIndexRow first[] = {{50, 0}};
    const DigitalRfIndexRow second[] = {{60, 0}};
    const DigitalRfIndexRow third[] = {{80, 0}};
    append_digital_rf_file(first, 10, 0, "a", pieces);
    append_digital_rf_file(second, 10, 1, "b", pieces);
    append_digital_rf_file(third, 10, 2, "c", pieces);
    EXPECT_EQ(pieces.gaps(), 1U);
    const std::vector<SamplePiece> found = pieces.take();
    EXPECT_FALSE(found[1].gap_before);
    EXPECT_EQ(found[2].samples_missing, 10U);
    EXPECT_EQ(found[2].file, 2U);
}

TEST(DigitalRfIndex, RefusesEntriesThatLie) {
    const std::vector<std::vector<DigitalRfIndexRow>> lies = {
        {{1000, 1}},
        {{1000, 0}, {1010, 0}},
        {{1000, 0}, {1010, 12}},
        {{1000, 0}, {1010, UINT64_MAX}},
        {{1000, 0}, {1002, 4}},
        {{UINT64_MAX, 0}},
        {{0, 0}, {uint64_t{1} << 63, 4}},
    };
    for (const auto& index : lies) {
        EXPECT_THROW(pieces_of(index, 12), UsageError);
    }
    expect_mentions(usage_error([] {
                        pieces_of({{1000, 0}, {1002, 4}}, 12);
                    }),
                    {"rf.h5", "rf_data_index[1]", "sample 1002", "ends at sample 1004"});
}

TEST(DigitalRfNames, AreTakenApart) {
    EXPECT_EQ(digital_rf_file_time_ms("rf@1394368230.250.h5"), 1'394'368'230'250U);
    for (const char* name :
         {"tmp.rf@1394368230.000.h5", "rf@1394368230.h5", "rf@.h5", "rf@x.000.h5", "rf@1.00.h5",
          "metadata@1567105700.h5", "rf@99999999999999999999.000.h5", "rf@"}) {
        EXPECT_EQ(digital_rf_file_time_ms(name), std::nullopt) << name;
    }
    EXPECT_TRUE(is_digital_rf_folder("2014-03-09T12-30-30"));
    EXPECT_FALSE(is_digital_rf_folder("metadata"));
    EXPECT_FALSE(is_digital_rf_folder("2014-03-09T12:30:30"));
}

TEST(DigitalRfSource, RefusesFoldersWithoutOne) {
    const TemporaryFolder folder;
    const auto open = [](const std::string& path) {
        open_digital_rf_source(SourceUri::parse("digital_rf:" + path), {});
    };
    expect_mentions(usage_error([&] { open(folder.file("")); }), {"drf_properties.h5"});
    expect_mentions(usage_error([&] { open("/no/such/folder"); }), {"/no/such/folder", "No such"});
    expect_mentions(usage_error([&] { open(""); }), {"digital_rf:recording/ch0"});
    folder.write("drf_properties.h5", "no HDF5 at all");
    expect_mentions(usage_error([&] { open(folder.file("")); }),
                    {"drf_properties.h5", "no whole HDF5 file", "14 bytes"});
}

// The recording of the digital_rf project: complex int16 at 200/3 Hz; the file of second ...235 is
// missing, and there are gaps inside other seconds. Expected: rf_data_index as h5py lists it.
TEST(DigitalRfSynthetic, AMissingSecondIsAGap) {
    const std::string path =
        ECHELLE_SHARED_DATA "/digital_rf/synthetic/sc16_x1_n200_d3_10s_1000ms_c0";
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "no real recordings here";
    }
    const auto source =
        open_digital_rf_source(SourceUri::parse("digital_rf:" + path + "?samples=64"), {});
    const Stream stream = source->stream();
    EXPECT_EQ(stream.geometry, (FrameGeometry{1, 64, SampleFormat::ci16, Layout::sample_major}));
    EXPECT_EQ(stream.rate, (Rational{200, 3}));
    // Sample 92957882000 at 200/3 Hz is second 1394368230 exactly.
    EXPECT_EQ(stream.epoch_ns, int64_t{1'394'368'230} * 1'000'000'000);
    // Runs of the index: samples from ...000 on.
    const struct {
        uint64_t first;
        uint64_t count;
    } runs[] = {{0, 67 + 33}, {100, 34 + 32}, {233, 34}, {267, 33}, {433, 27}, {462, 5}};
    uint64_t total = 0;
    for (const PlayedFrame& frame : play(*source)) {
        total += frame.valid_samples;
        for (const auto& run : runs) {
            if (frame.first_sample == run.first) {
                const bool begins_stretch =
                    run.first == 233 || run.first == 433 || run.first == 462;
                EXPECT_EQ(frame.flags, begins_stretch ? uint32_t{frame_gap_before} : 0U)
                    << run.first;
            }
        }
    }
    EXPECT_EQ(total, source->total_samples());
    EXPECT_EQ(total, 67U + 67 + 32 + 34 + 33 + 32 + 67 + 66 + 67 + 67 + 66 + 67 + 67 + 66);
    // 166 -> 233, 300 -> 433, 460 -> 462: three gaps.
    expect_mentions(source->describe(), {"3 gaps", "14 files"});
}

TEST(DigitalRfExample, TheFolderAboveAChannelWillDo) {
    const std::string path = ECHELLE_SHARED_DATA "/digital_rf/example";
    if (!std::filesystem::exists(path)) {
        GTEST_SKIP() << "no real recordings here";
    }
    const auto source = open_digital_rf_source(SourceUri::parse("drf:" + path), {});
    EXPECT_EQ(source->stream().rate, (Rational{10'000, 1}));
    EXPECT_EQ(source->total_samples(), 10'000U);
    expect_mentions(source->describe(), {"recorded as continuous"});
    EXPECT_EQ(play(*source).size(), 5U);
}

}  // namespace
}  // namespace echelle
