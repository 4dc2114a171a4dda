#include "coordinator/sources/blue_header.hpp"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "common/error.hpp"
#include "coordinator/sources/header_number.hpp"

namespace echelle {
namespace {

class Fields {
  public:
    Fields(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {
        if (bytes.size() < blue_header_bytes || !looks_like_blue(bytes)) {
            throw UsageError("'" + what_ +
                             "' does not begin with a BLUE header of 512 bytes: is it a whole BLUE "
                             "file?");
        }
        big_ = representation("head_rep", 4);
    }

    std::string letters(size_t at, size_t count) const {
        std::string text(bytes_.substr(at, count));
        for (char& letter : text) {
            letter = letter > ' ' && letter < '\x7F' ? letter : '?';
        }
        return text;
    }

    // True for big-endian. "EEEI" and "IEEE" are ICD's names; the VAX's are gone.
    bool representation(const char* field, size_t at) const {
        const std::string_view text = bytes_.substr(at, 4);
        if (text != "EEEI" && text != "IEEE") {
            refuse(field, "'" + letters(at, 4) + "'", "EEEI (little-endian) or IEEE (big-endian)");
        }
        return text == "IEEE";
    }

    int32_t int32_at(size_t at) const {
        return static_cast<int32_t>(static_cast<uint32_t>(bits_at(at, sizeof(int32_t))));
    }
    double double_at(size_t at) const { return std::bit_cast<double>(bits_at(at, sizeof(double))); }

    // Bytes counted in a double, as the format has it.
    uint64_t bytes_at(const char* field, size_t at) const {
        const double value = double_at(at);
        constexpr double exact_below = 0x1p53;
        if (!(value >= 0 && value < exact_below && value == std::floor(value))) {
            refuse(field, text_of(value), "a whole number of bytes");
        }
        return static_cast<uint64_t>(value);
    }

    static std::string text_of(double value) {
        std::array<char, 32> text{};
        const auto end = std::to_chars(text.data(), text.data() + text.size(), value);
        return {text.data(), end.ptr};
    }

    [[noreturn]] void refuse(const char* field, const std::string& seen,
                             const std::string& expected) const {
        throw UsageError("'" + what_ + "': the header has " + field + " " + seen + ": expected " +
                         expected);
    }

  private:
    uint64_t bits_at(size_t at, size_t count) const {
        uint64_t value = 0;
        for (size_t i = 0; i < count; ++i) {
            const size_t from = big_ ? at + i : at + count - 1 - i;
            value = (value << 8) | static_cast<unsigned char>(bytes_[from]);
        }
        return value;
    }

    std::string_view bytes_;
    std::string what_;
    bool big_ = false;
};

void read_format(const Fields& fields, BlueHeader& header) {
    constexpr size_t data_representation_at = 8;
    constexpr size_t format_at = 52;
    const bool is_big = fields.representation("data_rep", data_representation_at);
    const std::string format = fields.letters(format_at, 2);
    header.format = format[0] == 'C' ? SampleFormat::ci16 : SampleFormat::i16;
    if ((format[0] != 'S' && format[0] != 'C') || (format[1] != 'I' && format[1] != 'B')) {
        fields.refuse("format", "'" + format + "'",
                      "SI, CI, SB or CB (16- or 8-bit integers, real or complex); convert others "
                      "to one of them");
    }
    header.coding = format[1] == 'B' ? ValueCoding::int8
                    : is_big         ? ValueCoding::int16_big
                                     : ValueCoding::int16_little;
}

void read_time(const Fields& fields, BlueHeader& header, const std::string& what) {
    constexpr size_t timecode_at = 56;
    constexpr size_t xstart_at = 256;
    constexpr size_t xdelta_at = 264;
    constexpr size_t xunits_at = 272;
    constexpr int32_t no_units = 0;
    constexpr int32_t seconds = 1;
    const double delta = fields.double_at(xdelta_at);
    if (!(delta > 1e-18 && delta < 1e9)) {
        fields.refuse("xdelta", Fields::text_of(delta), "the seconds of a sample");
    }
    const int32_t units = fields.int32_at(xunits_at);
    if (units != no_units && units != seconds) {
        fields.refuse("xunits", std::to_string(units), "1 (seconds): it is no recording over time");
    }
    const Rational period = Rational::from_double(delta, "'" + what + "': xdelta");
    header.rate = {period.denominator, period.numerator};
    const double timecode = fields.double_at(timecode_at);
    if (timecode == 0) {
        return;
    }
    // J1950: seconds since 1950, UTC.
    constexpr int64_t from_1950_to_1970_ns = int64_t{631'152'000} * 1'000'000'000;
    const std::optional<int64_t> start = seconds_to_ns(timecode);
    const std::optional<int64_t> offset = seconds_to_ns(fields.double_at(xstart_at));
    int64_t epoch_ns = 0;
    if (!start || !offset || __builtin_sub_overflow(*start, from_1950_to_1970_ns, &epoch_ns) ||
        __builtin_add_overflow(epoch_ns, *offset, &epoch_ns)) {
        fields.refuse("timecode", Fields::text_of(timecode), "seconds since 1950");
    }
    header.epoch_ns = epoch_ns;
}

}  // namespace

BlueHeader parse_blue_header(std::string_view bytes, const std::string& what) {
    constexpr size_t detached_at = 12;
    constexpr size_t data_start_at = 32;
    constexpr size_t data_size_at = 40;
    constexpr size_t type_at = 48;
    const Fields fields(bytes, what);
    const int32_t type = fields.int32_at(type_at);
    if (type != 1000 && type != 1001) {
        fields.refuse("type", std::to_string(type), "1000: samples of one channel over time");
    }
    BlueHeader header;
    read_format(fields, header);
    read_time(fields, header, what);
    header.detached = fields.int32_at(detached_at) != 0;
    header.data_start = fields.bytes_at("data_start", data_start_at);
    header.data_bytes = fields.bytes_at("data_size", data_size_at);
    if (!header.detached && header.data_start < blue_header_bytes) {
        fields.refuse("data_start", std::to_string(header.data_start),
                      "512 or more: samples lie behind the header");
    }
    return header;
}

bool looks_like_blue(std::string_view bytes) {
    const std::string_view representation = bytes.substr(std::min<size_t>(bytes.size(), 4), 4);
    return bytes.starts_with("BLUE") && (representation == "EEEI" || representation == "IEEE");
}

}  // namespace echelle
