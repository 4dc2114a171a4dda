#include "coordinator/sources/dada_header.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "common/error.hpp"
#include "coordinator/sources/header_number.hpp"
#include "coordinator/sources/utc_datetime.hpp"

namespace echelle {
namespace {

constexpr uint64_t usual_header_bytes = 4096;
constexpr uint64_t most_channels = 65'536;

// The header's text ends at the first NUL: the rest of its bytes is padding.
std::string_view text_of_header(std::string_view bytes) {
    return bytes.substr(0, bytes.find('\0'));
}

// Calls `use` with key and value of each line; a key is a whole word at a line's start.
template <typename Use>
void for_each_line(std::string_view text, Use use) {
    while (!text.empty()) {
        const size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        line = line.substr(0, line.find('#'));
        const size_t key_end = line.find_first_of(" \t");
        if (key_end == 0 || key_end == std::string_view::npos) {
            continue;
        }
        const std::string_view rest = trimmed(line.substr(key_end));
        use(line.substr(0, key_end), rest.substr(0, rest.find_first_of(" \t")));
    }
}

class Keys {
  public:
    Keys(std::string_view bytes, std::string what) : what_(std::move(what)) {
        // The first line of a key counts, as in ascii_header_get.
        for_each_line(text_of_header(bytes), [this](std::string_view key, std::string_view value) {
            values_.emplace(key, value);
        });
    }

    std::optional<std::string> find(const std::string& key) const {
        const auto found = values_.find(key);
        return found == values_.end() ? std::nullopt : std::optional(std::string(found->second));
    }

    std::optional<uint64_t> count(const std::string& key, uint64_t least, uint64_t most) const {
        const auto text = find(key);
        if (!text) {
            return std::nullopt;
        }
        const std::optional<uint64_t> value = parse_header_count(*text);
        if (!value || *value < least || *value > most) {
            refuse(key,
                   "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
        }
        return value;
    }

    [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
        const std::string text = find(key).value_or("");
        std::string seen;
        for (const char c : text.substr(0, 60)) {
            seen += c >= ' ' && c < '\x7F' ? c : '?';
        }
        throw UsageError("'" + what_ + "': the header has " + key +
                         (find(key) ? " '" + seen + "'" : " missing") + ": expected " + expected);
    }

  private:
    std::string what_;
    std::map<std::string, std::string_view, std::less<>> values_;
};

// "2013-07-02-01:37:40", with a fraction or without.
std::optional<int64_t> parse_start(const std::string& text) {
    constexpr size_t date_length = 10;
    if (text.size() <= date_length || text[date_length] != '-') {
        return std::nullopt;
    }
    return parse_utc_datetime(text.substr(0, date_length) + "T" + text.substr(date_length + 1) +
                              "Z");
}

void read_start(const Keys& keys, DadaHeader& header) {
    header.start_text = keys.find("UTC_START");
    if (!header.start_text || *header.start_text == "UNKNOWN" || *header.start_text == "unset") {
        header.start_text.reset();
        return;
    }
    header.start_ns = parse_start(*header.start_text);
    if (!header.start_ns) {
        keys.refuse("UTC_START", "a UTC time between 1677 and 2262 such as 2013-07-02-01:37:40");
    }
    constexpr uint64_t second_ps = 1'000'000'000'000;
    *header.start_ns +=
        static_cast<int64_t>((keys.count("PICOSECONDS", 0, second_ps).value_or(0) + 500) / 1000);
}

void read_rate(const Keys& keys, DadaHeader& header, const std::string& what) {
    const auto text = keys.find("TSAMP");
    if (!text) {
        return;
    }
    const std::optional<double> microseconds = parse_header_number(*text);
    if (!microseconds || !(*microseconds > 1e-9 && *microseconds < 1e12)) {
        keys.refuse("TSAMP", "the microseconds of a sample");
    }
    const Rational period = Rational::from_double(*microseconds, "'" + what + "': TSAMP");
    constexpr uint64_t million = 1'000'000;
    // 10^6 x denominator / numerator: a term of 64 bits may leave no room for the million.
    if (period.denominator > std::numeric_limits<uint64_t>::max() / million) {
        header.rate = Rational::from_double(1e6 / *microseconds, "'" + what + "': TSAMP");
    } else {
        header.rate = Rational::reduced(period.denominator * million, period.numerator);
    }
}

}  // namespace

uint64_t dada_header_bytes(std::string_view bytes, const std::string& what) {
    return Keys(bytes, what)
        .count("HDR_SIZE", 1, most_dada_header_bytes)
        .value_or(usual_header_bytes);
}

DadaHeader parse_dada_header(std::string_view bytes, const std::string& what) {
    const Keys keys(bytes, what);
    DadaHeader header;
    header.header_bytes = dada_header_bytes(bytes, what);
    header.polarisations = static_cast<uint32_t>(keys.count("NPOL", 1, 64).value_or(1));
    header.channels = static_cast<uint32_t>(
        keys.count("NCHAN", 1, most_channels / header.polarisations).value_or(1));
    const std::optional<uint64_t> bits = keys.count("NBIT", 1, 64);
    if (bits != 8U && bits != 16U) {
        keys.refuse("NBIT", "8 or 16; convert others first");
    }
    header.coding = bits == 8U ? ValueCoding::int8 : ValueCoding::int16_little;
    header.is_complex = keys.count("NDIM", 1, 2).value_or(1) == 2;
    if (const auto order = keys.find("ORDER"); order && *order != "TFP" && *order != "T") {
        keys.refuse("ORDER", "TFP (time, frequency, polarisation); convert others first");
    }
    header.offset_bytes = keys.count("OBS_OFFSET", 0, INT64_MAX).value_or(0);
    header.overlap_bytes = keys.count("OBS_OVERLAP", 0, INT64_MAX).value_or(0);
    header.file_bytes = keys.count("FILE_SIZE", 0, INT64_MAX);
    read_rate(keys, header, what);
    read_start(keys, header);
    return header;
}

bool looks_like_dada(std::string_view bytes) {
    const std::string_view text = text_of_header(bytes);
    const bool is_text = std::all_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) >= ' ' || c == '\n' || c == '\t' || c == '\r';
    });
    bool has_key = false;
    for_each_line(text, [&has_key](std::string_view key, std::string_view) {
        has_key |= key == "HDR_SIZE" || key == "HDR_VERSION";
    });
    return is_text && has_key;
}

}  // namespace echelle
