#include "coordinator/sources/source.hpp"
#include "tests/unit/byte_builder.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

TEST(OpenSource, FindsTheSourceOfTheScheme) {
    const TemporaryFolder folder;
    folder.write("a.bin", little_endian({1, 2}));
    const std::string uri = "raw:" + folder.file("a.bin") + "?channels=2&rate=1";
    expect_mentions(open_source(uri, {})->describe(), {"raw file", "a.bin"});
    expect_mentions(usage_error([] { open_source("sigmf:", {}); }), {"sigmf:capture.sigmf-meta"});
    expect_mentions(usage_error([] { open_source("ring:", {}); }), {"ring:NAME"});
    expect_mentions(usage_error([] { open_source("sim:?no-such-key=1", {}); }), {"no-such-key"});
}

// What is in a file decides, not its name.
TEST(OpenSource, KnowsRecordingsByTheirContentWhenOnlyAPathIsGiven) {
    const TemporaryFolder folder;
    const std::string wav =
        folder.write("misnamed.dada", "RIFF" + le(40, 4) + "WAVEfmt " + le(16, 4) + le(1, 2) +
                                          le(1, 2) + le(8000, 4) + le(16'000, 4) + le(2, 2) +
                                          le(16, 2) + "data" + le(4, 4) + "abcd");
    expect_mentions(open_source(wav, {})->describe(), {"WAV"});
    EXPECT_EQ(open_source(wav + "?samples=7", {})->stream().geometry.samples, 7U);
    const std::string dada =
        folder.write("2013-07-02-01:37:40.wav",
                     padded("HDR_VERSION 1.0\nHDR_SIZE 4096\nNBIT 8\nTSAMP 1\n", 4096) + "1234");
    expect_mentions(open_source(dada, {})->describe(), {"PSRDADA"});
    const std::string guppi = folder.write(
        "g.wav", padded("OBSNCHAN= 1", 80, ' ') + padded("BLOCSIZE= 4", 80, ' ') +
                     padded("TBIN    = 0.5", 80, ' ') + padded("END", 80, ' ') + "1234");
    expect_mentions(open_source(guppi, {})->describe(), {"GUPPI"});
    const std::string meta = folder.write(
        "s.sigmf-meta", R"( {"global": {"core:version": "1.2.0", "core:datatype": "ri16_le",
                            "core:sample_rate": 1}, "captures": []})");
    folder.write("s.sigmf-data", "12");
    expect_mentions(open_source(meta, {})->describe(), {"SigMF"});
    expect_mentions(open_source(folder.file("s.sigmf-data"), {})->describe(), {"SigMF"});
}

TEST(OpenSource, SaysWhatAFileIsThatItCannotRead) {
    const TemporaryFolder folder;
    const auto message = [&folder](const std::string& bytes) {
        return usage_error([&] { open_source(folder.write("x.wav", bytes), {}); });
    };
    expect_mentions(message("just some text"), {"x.wav", "raw:FILE"});
    expect_mentions(message(""), {"empty"});
    expect_mentions(message("\x89HDF\r\n\x1A\n"), {"Digital RF"});
    expect_mentions(message("\xD4\xC3\xB2\xA1"), {"packet capture", "truncated"});
    expect_mentions(message("\x1F\x8B\x08"), {"compressed"});
    expect_mentions(usage_error([&] { open_source(folder.file(""), {}); }), {"drf_properties.h5"});
    expect_mentions(usage_error([&] { open_source(folder.file("nothing"), {}); }),
                    {"nothing", "No such file"});
    expect_mentions(usage_error([] { open_source("nothing.wav", {}); }), {"scheme"});
}

TEST(OpenSource, RefusesAnUnknownSchemeAndListsTheKnownOnes) {
    expect_mentions(usage_error([] { open_source("raws:a.bin", {}); }),
                    {"'raws:a.bin'", "unknown scheme 'raws'", "sim:", "ring:", "raw:", "sigmf:"});
}

}  // namespace
}  // namespace echelle
