#include "coordinator/sources/sigmf_metadata.hpp"

#include <gtest/gtest.h>

#include "coordinator/sources/sigmf_fields.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

SigmfMetadata parse(const std::string& text) {
    return parse_sigmf_metadata(text, "x.sigmf-meta");
}

// Metadata with more fields in "global", and the given captures.
std::string document(const std::string& global, const std::string& captures = "[]") {
    return R"({"global": {"core:version": "1.2.0", )" + global + R"(}, "captures": )" + captures +
           R"(, "annotations": []})";
}

const std::string datatype = R"("core:datatype": "ri16_le")";

std::string with_datatype(const std::string& type) {
    return document(R"("core:datatype": ")" + type + "\"");
}

std::string with_global(const std::string& field) {
    return document(datatype + ", " + field);
}

std::string with_capture(const std::string& fields) {
    return document(datatype, R"([{"core:sample_start": 0, )" + fields + "}]");
}

TEST(SigmfMetadata, ReadsWhatItNeedsAndIgnoresTheRest) {
    const SigmfMetadata metadata = parse(R"({
        "global": {
            "core:datatype": "ci16_be", "core:num_channels": 3, "core:sample_rate": 66.666,
            "core:version": "1.2.0", "core:author": "somebody", "vendor:thing": {"a": [1, {}]},
            "core:dataset": "x.dat", "core:trailing_bytes": 12, "core:offset": 100,
            "core:metadata_only": true, "core:geolocation": {"core:datatype": "rf64_le"},
            "core:extensions": [{"name": "antenna", "version": "1.0.0", "optional": true}]
        },
        "captures": [
            {"core:sample_start": 100, "core:datetime": "2021-06-18T23:17:51.163959Z",
             "core:frequency": 915e6, "core:header_bytes": 4, "x": [[{"core:sample_start": 9}]]},
            {"core:sample_start": 5e2, "core:global_index": 18446744073709551615}
        ],
        "annotations": [{"core:sample_start": -7}, [[[]]], null]
    })");
    EXPECT_EQ(metadata.format, SampleFormat::ci16);
    EXPECT_EQ(metadata.coding, ValueCoding::int16_big);
    EXPECT_EQ(metadata.channels, 3U);
    EXPECT_EQ(metadata.sample_rate, (Rational{33333, 500}));
    EXPECT_EQ(metadata.dataset, "x.dat");
    EXPECT_EQ(metadata.trailing_bytes, 12U);
    EXPECT_EQ(metadata.offset, 100U);
    EXPECT_TRUE(metadata.metadata_only);
    ASSERT_EQ(metadata.captures.size(), 2U);
    EXPECT_EQ(metadata.captures[0].sample_start, 100U);
    EXPECT_EQ(metadata.captures[0].epoch_ns, 1'624'058'271'163'959'000);
    EXPECT_EQ(metadata.captures[0].frequency, 915e6);
    EXPECT_EQ(metadata.captures[0].header_bytes, 4U);
    EXPECT_EQ(metadata.captures[0].global_index, std::nullopt);
    EXPECT_EQ(metadata.captures[1].sample_start, 500U);
    EXPECT_EQ(metadata.captures[1].global_index, UINT64_MAX);
    EXPECT_EQ(metadata.captures[1].epoch_ns, std::nullopt);
}

TEST(SigmfMetadata, DefaultsAreThoseOfTheSpecification) {
    const SigmfMetadata metadata = parse(document(datatype));
    EXPECT_EQ(metadata.channels, 1U);
    EXPECT_EQ(metadata.sample_rate, std::nullopt);
    EXPECT_EQ(metadata.dataset, std::nullopt);
    EXPECT_EQ(metadata.trailing_bytes, 0U);
    EXPECT_FALSE(metadata.metadata_only);
    ASSERT_EQ(metadata.captures.size(), 1U);  // [] means one that begins with sample 0
    EXPECT_EQ(metadata.captures[0].sample_start, 0U);
}

TEST(SigmfMetadata, OrderOfTheObjectsDoesNotMatter) {
    const SigmfMetadata metadata = parse(
        R"({"annotations": [], "captures": [{"core:sample_start": 3}],
            "global": {"core:datatype": "ri8", "core:version": "1.0.0"}})");
    EXPECT_EQ(metadata.coding, ValueCoding::int8);
    EXPECT_EQ(metadata.captures.at(0).sample_start, 3U);
}

TEST(SigmfMetadata, KnowsTheIntegerDatatypes) {
    const struct {
        const char* name;
        SampleFormat format;
        ValueCoding coding;
    } cases[] = {
        {"ri16_le", SampleFormat::i16, ValueCoding::int16_little},
        {"ri16_be", SampleFormat::i16, ValueCoding::int16_big},
        {"ri8", SampleFormat::i16, ValueCoding::int8},
        {"ci16_le", SampleFormat::ci16, ValueCoding::int16_little},
        {"ci16_be", SampleFormat::ci16, ValueCoding::int16_big},
        {"ci8", SampleFormat::ci16, ValueCoding::int8},
        {"ru8", SampleFormat::i16, ValueCoding::uint8},
        {"cu16_le", SampleFormat::ci16, ValueCoding::uint16_little},
        {"ru16_be", SampleFormat::i16, ValueCoding::uint16_big},
    };
    for (const auto& [name, format, coding] : cases) {
        const SigmfMetadata metadata = parse(with_datatype(name));
        EXPECT_EQ(metadata.format, format) << name;
        EXPECT_EQ(metadata.coding, coding) << name;
    }
}

TEST(SigmfMetadata, TellsUnsupportedDatatypesFromUnknownOnes) {
    for (const char* type : {"rf32_le", "ri32_be", "ru32_le", "rf64_be"}) {
        expect_mentions(usage_error([&] { parse(with_datatype(type)); }),
                        {"core:datatype", type, "8 or 16 bits", "convert", "ri16_le"});
    }
    for (const char* type : {"cf32_le", "cf64_be", "cu32_le"}) {
        expect_mentions(usage_error([&] { parse(with_datatype(type)); }),
                        {type, "8 or 16 bits", "ci16_le"});
    }
    for (const char* type :
         {"", "r", "ri16", "i16_le", "ri16_le ", "xri16_le", "ri16_lex", "ri16_me", "ri8_le",
          "ci8_be", "RI16_LE", "ri24_le", "r_le", "ri16_le\\u0000"}) {
        expect_mentions(usage_error([&] { parse(with_datatype(type)); }),
                        {"core:datatype", "expected a SigMF datatype"});
    }
}

TEST(SigmfMetadata, RefusesBadInputNamingTheField) {
    const std::string no_version = R"({"global": {"core:datatype": "ri16_le"}, "captures": []})";
    const std::string captures_unsorted = R"([{"core:sample_start": 5}, {"core:sample_start": 4}])";
    const struct {
        std::string text;
        std::initializer_list<std::string_view> parts;
    } cases[] = {
        {"", {"not valid JSON"}},
        {"{", {"not valid JSON"}},
        {"\n\n{]", {"not valid JSON", "line 3"}},
        {"{} {}", {"not valid JSON"}},
        {"{\"a\": NaN}", {"not valid JSON"}},
        {"{\"a\": \"\xFF\"}", {"not valid JSON"}},
        {"{\"a\": 1e999}", {"not valid JSON"}},
        {"17", {"not a JSON object"}},
        {"[]", {"not a JSON object"}},
        {"{}", {"no object \"global\""}},
        {R"({"global": []})", {"\"global\" is not an object"}},
        {R"({"global": 3})", {"\"global\" is not an object"}},
        {R"({"global": {"core:version": "1.2.0", "core:datatype": "ri8"}})",
         {"no array \"captures\""}},
        {document(datatype, "{}"), {"\"captures\" is not an array"}},
        {document(datatype, "null"), {"\"captures\" is not an array"}},
        {document(datatype, "[3]"), {"captures[0] is not an object"}},
        {document(datatype, R"([{"core:sample_start": 0}, []])"), {"captures[1] is not"}},
        {document(datatype, "[{}]"), {"captures[0]", "core:sample_start"}},
        {document(datatype, captures_unsorted), {"captures[1]", "core:sample_start 4", "5"}},
        {document(datatype, R"([{"core:sample_start": -1}])"), {"core:sample_start -1", "whole"}},
        {document(datatype, R"([{"core:sample_start": 0.5}])"), {"core:sample_start 0.5"}},
        {document(datatype, R"([{"core:sample_start": 1e300}])"), {"core:sample_start 1e+300"}},
        {document(datatype, R"([{"core:sample_start": 18446744073709551616}])"),
         {"core:sample_start", "2^64"}},
        {document(datatype, R"([{"core:sample_start": "0"}])"), {"core:sample_start \"0\""}},
        {document(datatype, R"([{"core:sample_start": null}])"), {"core:sample_start null"}},
        {document(datatype, R"([{"core:sample_start": [0]}])"), {"core:sample_start an array"}},
        {with_capture(R"("core:header_bytes": -4)"), {"core:header_bytes -4"}},
        {with_capture(R"("core:global_index": true)"), {"core:global_index true"}},
        {with_capture(R"("core:frequency": "915 MHz")"), {"core:frequency \"915 MHz\"", "number"}},
        {with_capture(R"("core:datetime": "yesterday")"), {"core:datetime \"yesterday\"", "UTC"}},
        {with_capture(R"("core:datetime": 1624058271)"), {"core:datetime 1624058271", "string"}},
        {no_version, {"global", "core:version"}},
        {document(R"("core:num_channels": 1)"), {"global", "core:datatype"}},
        {with_global(R"("core:version": "2.0.0")"), {"core:version \"2.0.0\""}},
        {with_global(R"("core:version": 1)"), {"core:version 1", "string"}},
        {with_global(R"("core:num_channels": 0)"), {"core:num_channels 0", "65536"}},
        {with_global(R"("core:num_channels": 65537)"), {"core:num_channels 65537"}},
        {with_global(R"("core:num_channels": 2.5)"), {"core:num_channels 2.5"}},
        {with_global(R"("core:sample_rate": 0)"), {"core:sample_rate", "'0'"}},
        {with_global(R"("core:sample_rate": -48000)"), {"core:sample_rate", "-48000"}},
        {with_global(R"("core:sample_rate": 1e300)"), {"core:sample_rate", "1e+300"}},
        {with_global(R"("core:sample_rate": "NaN")"), {"core:sample_rate \"NaN\"", "number"}},
        {with_global(R"("core:trailing_bytes": {})"), {"core:trailing_bytes an object"}},
        {with_global(R"("core:metadata_only": 1)"), {"core:metadata_only 1", "true or false"}},
        {with_global(R"("core:dataset": "../x.dat")"), {"core:dataset \"../x.dat\"", "folder"}},
        {with_global(R"("core:dataset": "/etc/passwd")"), {"core:dataset", "folder"}},
        {with_global(R"("core:dataset": "..")"), {"core:dataset", "folder"}},
        {with_global(R"("core:dataset": "")"), {"core:dataset", "folder"}},
        {with_global(R"("core:dataset": "a\u0000b")"), {"core:dataset", "folder"}},
        {with_global(R"("core:extensions": {"antenna": "1.0.0"})"), {"core:extensions an object"}},
        {with_global(R"("core:extensions": [1])"), {"core:extensions[0] is not an object"}},
        {with_global(R"("core:extensions": [{"optional": true}])"), {"core:extensions[0]", "name"}},
        {with_global(R"("core:extensions": [{"name": "a"}])"), {"core:extensions[0]", "optional"}},
        {with_global(R"("core:extensions": [{"name": "a", "optional": true},
                                            {"name": "lora", "optional": false}])"),
         {"core:extensions[1]", "\"lora\"", "optional: true"}},
        {with_global(R"("echelle:samples_per_frame": 1.5)"), {"samples_per_frame 1.5", "whole"}},
        {with_global(R"("echelle:samples_per_frame": -1)"), {"samples_per_frame -1", "from 0"}},
        {with_global(R"("echelle:epoch_ns": 9223372036854775808)"), {"echelle:epoch_ns", "2262"}},
        {with_global(R"("echelle:over_range_low": -32769)"), {"over_range_low -32769", "-32768"}},
        {with_global(R"("echelle:over_range_low": 5, "echelle:over_range_high": 5)"),
         {"over_range_high 5", "more than"}},
        {with_global(R"("echelle:unfinished": "yes")"), {"echelle:unfinished \"yes\"", "true"}},
        {with_capture(R"("echelle:gap_before": 1)"), {"echelle:gap_before 1", "true or false"}},
        {document(datatype) + "x", {"not valid JSON"}},
    };
    for (const auto& [text, parts] : cases) {
        SCOPED_TRACE(text);
        const std::string message = usage_error([&, t = text] { parse(t); });
        expect_mentions(message, {"x.sigmf-meta"});
        expect_mentions(message, parts);
    }
}

TEST(SigmfMetadata, DeepNestingDoesNotReachTheStack) {
    const std::string deep(1'000'000, '[');
    expect_mentions(usage_error([&] { parse("{\"a\":" + deep); }), {"nests deeper than 64"});
    const std::string level = R"({"a":)";
    std::string objects;
    for (int i = 0; i < 100'000; ++i) {
        objects += level;
    }
    expect_mentions(usage_error([&] { parse(objects); }), {"nests deeper than 64"});
}

TEST(SigmfMetadata, LongValuesAndLongTextsStayOutOfMessages) {
    const std::string huge(1'000'000, 'x');
    EXPECT_LT(usage_error([&] { parse(with_datatype(huge)); }).size(), 400U);
    EXPECT_LT(
        usage_error([&] { parse(with_capture("\"core:datetime\": \"" + huge + "\"")); }).size(),
        400U);
    EXPECT_LT(usage_error([&] { parse("{\"a\": \"" + huge); }).size(), 400U);
    const std::string newlines = "a\\nb";
    expect_mentions(usage_error([&] { parse(with_datatype(newlines)); }), {"a\\nb"});
    expect_mentions(usage_error([] { parse(std::string((1 << 26) + 1, ' ')); }),
                    {"67108865 bytes"});
}

// Expected values: Python's calendar.timegm.
TEST(UtcDatetime, IsReadToTheNanosecond) {
    const struct {
        const char* text;
        int64_t expected;
    } cases[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"2021-06-18T23:17:51.163959Z", 1'624'058'271'163'959'000},
        {"2021-06-18T23:17:51.5Z", 1'624'058'271'500'000'000},
        {"2021-06-18T23:17:51.000000001Z", 1'624'058'271'000'000'001},
        {"2021-06-18T23:17:51.0000000014999Z", 1'624'058'271'000'000'001},
        {"2021-06-18T23:17:51.0000000015Z", 1'624'058'271'000'000'002},
        {"2021-06-18T23:17:51.99999999999Z", 1'624'058'272'000'000'000},
        {"1955-11-05T14:00:00.000Z", -446'724'000'000'000'000},
        {"1969-12-31T23:59:59.75Z", -250'000'000},
        {"2000-02-29T00:00:00Z", 951'782'400'000'000'000},
        {"2016-12-31T23:59:60Z", 1'483'228'800'000'000'000},  // a leap second
        {"2262-04-11T23:47:14Z", 9'223'372'034'000'000'000},
        {"1677-09-21T00:12:45Z", -9'223'372'035'000'000'000},
    };
    for (const auto& [text, expected] : cases) {
        EXPECT_EQ(parse_utc_datetime(text), expected) << text;
    }
}

TEST(UtcDatetime, RefusesEverythingElse) {
    const char* cases[] = {
        "",
        "Z",
        "2021-06-18",
        "2021-06-18T23:17:51",
        "2021-06-18T23:17:51z",
        "2021-06-18 23:17:51Z",
        "2021-06-18T23:17:51+00:00",
        "2021-06-18T23:17:51.Z",
        "2021-06-18T23:17:51,5Z",
        "2021-06-18T23:17:51.5Z ",
        " 2021-06-18T23:17:51Z",
        "2021-6-18T23:17:51Z",
        "2021-13-01T00:00:00Z",
        "2021-00-01T00:00:00Z",
        "2021-02-29T00:00:00Z",
        "2021-04-31T00:00:00Z",
        "2021-06-18T24:00:00Z",
        "2021-06-18T23:60:00Z",
        "2021-06-18T23:17:61Z",
        "2021-06-18T23:17:60Z",
        "-021-06-18T23:17:51Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2262-04-11T23:47:17Z",
    };
    for (const char* text : cases) {
        EXPECT_EQ(parse_utc_datetime(text), std::nullopt) << text;
    }
}

}  // namespace
}  // namespace echelle
