#include "common/source_uri.hpp"

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

TEST(SourceUri, TakesItsPartsApart) {
    SourceUri uri = SourceUri::parse("raw:/data/a:b c.bin?channels=2&rate=48e3&note=a=b");
    EXPECT_EQ(uri.scheme(), "raw");
    EXPECT_EQ(uri.path(), "/data/a:b c.bin");
    EXPECT_EQ(uri.text(), "raw:/data/a:b c.bin?channels=2&rate=48e3&note=a=b");
    EXPECT_EQ(uri.take_unsigned("channels"), 2U);
    EXPECT_EQ(uri.take_number("rate"), 48000.0);
    EXPECT_EQ(uri.take("note"), "a=b");
    EXPECT_EQ(uri.take("offset"), std::nullopt);
    EXPECT_NO_THROW(uri.refuse_unknown_keys());
}

TEST(SourceUri, PathAndKeysMayBeEmpty) {
    EXPECT_EQ(SourceUri::parse("sim:").path(), "");
    EXPECT_EQ(SourceUri::parse("sim:?").path(), "");
    SourceUri uri = SourceUri::parse("sim:?signal=");
    EXPECT_EQ(uri.take("signal"), "");
}

TEST(SourceUri, DecodesThreeCodesInThePathAndNoOther) {
    EXPECT_EQ(SourceUri::parse("raw:a%3Fb%3fc%23d%25e").path(), "a?b?c#d%e");
    EXPECT_EQ(SourceUri::parse("raw:a%20b#c%").path(), "a%20b#c%");
    EXPECT_EQ(SourceUri::parse("raw:%2523").path(), "%23");
}

TEST(SourceUri, RefusesWhatIsNoUri) {
    const char* cases[] = {
        "",         "capture.bin",   ":path",          "/data/a:b",  "RAW:x", "raw:x?channels",
        "raw:x?=2", "raw:x?a=1&a=2", "raw:x?a=1&&b=2", "raw:x?a=1&b"};
    for (const char* text : cases) {
        EXPECT_THROW(SourceUri::parse(text), UsageError) << text;
    }
    EXPECT_THROW(SourceUri::parse(std::string_view("raw:a\0b", 7)), UsageError);
}

TEST(SourceUri, RefusesValuesThatAreNoNumbers) {
    const char* unsigned_cases[] = {
        "", "-1", "+1", "1.5", "1e3", "0x10", "2 ", " 2", "18446744073709551616"};
    for (const std::string text : unsigned_cases) {
        SourceUri uri = SourceUri::parse("raw:x?n=" + text);
        EXPECT_THROW(uri.take_unsigned("n"), UsageError) << text;
    }
    for (const std::string text : {"", "inf", "nan", "-inf", "1e999", "1,5", "abc", "1 "}) {
        SourceUri uri = SourceUri::parse("raw:x?n=" + text);
        EXPECT_THROW(uri.take_number("n"), UsageError) << text;
    }
    SourceUri uri = SourceUri::parse("raw:x?n=18446744073709551615&x=-2.5");
    EXPECT_EQ(uri.take_unsigned("n"), UINT64_MAX);
    EXPECT_EQ(uri.take_number("x"), -2.5);
}

TEST(SourceUri, NamesUnknownKeysAndThoseThatItKnows) {
    SourceUri uri = SourceUri::parse("raw:x?chanels=2&rate=1");
    uri.take("channels");
    uri.take("rate");
    try {
        uri.refuse_unknown_keys();
        FAIL() << "accepted";
    } catch (const UsageError& error) {
        const std::string message = error.what();
        EXPECT_NE(message.find("unknown key 'chanels'"), std::string::npos) << message;
        EXPECT_NE(message.find("it takes channels, rate"), std::string::npos) << message;
    }
}

}  // namespace
}  // namespace echelle
