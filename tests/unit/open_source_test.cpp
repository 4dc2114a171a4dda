#include "coordinator/sources/source.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

TEST(OpenSource, FindsTheSourceOfTheScheme) {
    const TemporaryFolder folder;
    folder.write("a.bin", little_endian({1, 2}));
    const std::string uri = "raw:" + folder.file("a.bin") + "?channels=2&rate=1";
    expect_mentions(open_source(SourceUri::parse(uri), {})->describe(), {"raw file", "a.bin"});
    expect_mentions(usage_error([] { open_source(SourceUri::parse("sigmf:"), {}); }),
                    {"sigmf:capture.sigmf-meta"});
    expect_mentions(usage_error([] { open_source(SourceUri::parse("ring:"), {}); }), {"ring:NAME"});
    expect_mentions(usage_error([] { open_source(SourceUri::parse("sim:?no-such-key=1"), {}); }),
                    {"no-such-key"});
}

TEST(OpenSource, RefusesAnUnknownSchemeAndListsTheKnownOnes) {
    expect_mentions(usage_error([] { open_source(SourceUri::parse("raws:a.bin"), {}); }),
                    {"'raws:a.bin'", "unknown scheme 'raws'", "sim:", "ring:", "raw:", "sigmf:"});
}

}  // namespace
}  // namespace echelle
