#include "coordinator/sources/guppi_header.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "common/error.hpp"
#include "coordinator/sources/header_number.hpp"

namespace echelle {
namespace {

constexpr size_t card_bytes = 80;
constexpr size_t keyword_bytes = 8;
constexpr uint64_t direct_io_bytes = 512;
constexpr uint32_t most_channels = 65'536;

bool is_keyword(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    });
}

// What stands behind "=": a string without its quotes, or a number without its comment.
std::string_view value_of(std::string_view card) {
    std::string_view text = trimmed(card.substr(keyword_bytes + 1));
    if (text.starts_with('\'')) {
        return trimmed(text.substr(1, text.find('\'', 1) - 1));
    }
    return trimmed(text.substr(0, text.find('/')));
}

class Cards {
  public:
    Cards(std::string_view bytes, std::string what) : what_(std::move(what)) {
        const size_t limit = std::min<size_t>(bytes.size(), most_guppi_header_bytes);
        for (size_t at = 0; at + card_bytes <= limit; at += card_bytes) {
            const std::string_view card = bytes.substr(at, card_bytes);
            if (trimmed(card) == "END") {
                header_bytes_ = at + card_bytes;
                return;
            }
            const std::string_view keyword = trimmed(card.substr(0, keyword_bytes));
            if (card[keyword_bytes] == '=' && is_keyword(keyword)) {
                values_[std::string(keyword)] = value_of(card);
            } else if (card[keyword_bytes] != ' ' || (!keyword.empty() && !is_keyword(keyword))) {
                throw UsageError(
                    "'" + what_ + "': the header's card " + std::to_string(at / card_bytes + 1) +
                    " is not of the form KEYWORD = value: is it GUPPI raw, and whole?");
            }
        }
        throw UsageError("'" + what_ + "': the header has no END card within its first " +
                         std::to_string(limit) + " bytes: is it GUPPI raw, and whole?");
    }

    uint64_t header_bytes() const { return header_bytes_; }

    std::optional<std::string_view> find(const std::string& key) const {
        const auto found = values_.find(key);
        return found == values_.end() ? std::nullopt : std::optional(found->second);
    }

    std::optional<uint64_t> count(const std::string& key) const {
        const auto text = find(key);
        if (!text) {
            return std::nullopt;
        }
        const std::optional<uint64_t> value = parse_header_count(*text);
        if (!value) {
            refuse(key, "a whole number");
        }
        return value;
    }

    uint64_t need_count(const std::string& key, uint64_t least, uint64_t most) const {
        const std::optional<uint64_t> value = count(key);
        if (!value || *value < least || *value > most) {
            refuse(key, std::to_string(least) + " to " + std::to_string(most));
        }
        return *value;
    }

    std::optional<double> number(const std::string& key) const {
        const auto text = find(key);
        if (!text) {
            return std::nullopt;
        }
        const std::optional<double> value = parse_header_number(*text);
        if (!value) {
            refuse(key, "a number");
        }
        return value;
    }

    [[noreturn]] void refuse(const std::string& key, const std::string& expected) const {
        const auto text = find(key);
        std::string seen = "missing";
        if (text) {
            seen.clear();
            for (const char c : *text) {
                seen += c >= ' ' && c < '\x7F' ? c : '?';
            }
            seen = "'" + seen + "'";
        }
        throw UsageError("'" + what_ + "': the header has " + key + " " + seen + ": expected " +
                         expected);
    }

  private:
    std::string what_;
    std::map<std::string, std::string_view> values_;  // the last of a repeated keyword
    uint64_t header_bytes_ = 0;
};

// NPOL counts polarisations, or with 4 the four real numbers of two.
uint32_t polarisations_of(const Cards& cards) {
    const uint64_t written = cards.count("NPOL").value_or(1);
    if (written != 1 && written != 2 && written != 4) {
        cards.refuse("NPOL", "1, 2 or 4 (two polarisations); add the key pols= if you know better");
    }
    return written == 1 ? 1 : 2;
}

void read_coding(const Cards& cards, GuppiHeader& header) {
    const uint64_t bits = cards.count("NBITS").value_or(8);
    if (bits != 8 && bits != 16) {
        cards.refuse("NBITS", "8 or 16; convert others to 8 bits first");
    }
    header.coding = bits == 8 ? ValueCoding::int8 : ValueCoding::int16_little;
    const std::string_view order = cards.find("PKTFMT").value_or("1SFA");
    header.time_first = order == "SIMPLE";  // DSPSR's word for it
}

// STT_IMJD, STT_SMJD and STT_OFFS: day, second of the day and the rest of it.
std::optional<int64_t> start_of(const Cards& cards) {
    if (!cards.find("STT_IMJD")) {
        return std::nullopt;
    }
    constexpr uint64_t unix_epoch_mjd = 40'587;
    constexpr uint64_t last_mjd = unix_epoch_mjd + 106'000;  // in the year 2260
    constexpr uint64_t seconds_per_day = 86'400;
    const uint64_t day = cards.need_count("STT_IMJD", unix_epoch_mjd, last_mjd);
    const double second = cards.number("STT_SMJD").value_or(0);
    const double offset = cards.number("STT_OFFS").value_or(0);
    if (second < 0 || second > static_cast<double>(seconds_per_day)) {
        cards.refuse("STT_SMJD", "a second of the day");
    }
    if (offset < -1 || offset > static_cast<double>(seconds_per_day)) {
        cards.refuse("STT_OFFS", "a fraction of a second");
    }
    const auto whole = static_cast<int64_t>((day - unix_epoch_mjd) * seconds_per_day);
    return whole * 1'000'000'000 + *seconds_to_ns(second) + *seconds_to_ns(offset);
}

void check_block(const Cards& cards, const GuppiHeader& header) {
    if (header.block_bytes % header.sample_bytes() != 0) {
        cards.refuse("BLOCSIZE", "a multiple of " + std::to_string(header.sample_bytes()) + " (" +
                                     std::to_string(header.channels) + " channels x " +
                                     std::to_string(header.polarisations) +
                                     " polarisations, complex); add the key pols= if NPOL means "
                                     "something else");
    }
    if (header.overlap >= header.block_samples()) {
        cards.refuse("OVERLAP", "less than the block's " + std::to_string(header.block_samples()) +
                                    " samples");
    }
}

}  // namespace

std::optional<uint64_t> GuppiHeader::first_sample() const {
    constexpr uint64_t most = std::numeric_limits<int64_t>::max();
    const uint64_t step = block_samples() - overlap;
    if (packet_index && packets_per_block > 0) {
        // step x index / packets, in parts that don't wrap.
        const uint64_t blocks = *packet_index / packets_per_block;
        const uint64_t rest = *packet_index % packets_per_block;
        if (blocks >= most / step) {
            return std::nullopt;
        }
        return blocks * step + rest * step / packets_per_block;
    }
    if (!packet_index || packet_bytes == 0 || *packet_index > most / packet_bytes) {
        return std::nullopt;
    }
    // PKTIDX counts no packets of the overlap.
    return *packet_index * packet_bytes / sample_bytes();
}

GuppiHeader parse_guppi_header(std::string_view bytes, uint32_t polarisations,
                               const std::string& what) {
    const Cards cards(bytes, what);
    GuppiHeader header;
    header.header_bytes = cards.header_bytes();
    if (cards.count("DIRECTIO").value_or(0) != 0) {
        header.header_bytes =
            (header.header_bytes + direct_io_bytes - 1) / direct_io_bytes * direct_io_bytes;
    }
    constexpr uint64_t most_block_bytes = uint64_t{1} << 40;
    header.block_bytes = cards.need_count("BLOCSIZE", 1, most_block_bytes);
    header.polarisations = polarisations > 0 ? polarisations : polarisations_of(cards);
    header.channels = static_cast<uint32_t>(
        cards.need_count("OBSNCHAN", 1, most_channels / header.polarisations));
    read_coding(cards, header);
    header.overlap = cards.count("OVERLAP").value_or(0);
    header.packet_index = cards.count("PKTIDX");
    header.packet_bytes = cards.count("PKTSIZE").value_or(0);
    constexpr uint64_t most_packets = 1'000'000;
    header.packets_per_block = cards.count("PIPERBLK").value_or(0);
    if (header.packets_per_block > most_packets) {
        cards.refuse("PIPERBLK", "at most " + std::to_string(most_packets));
    }
    header.dropped_packets =
        cards.number("DROPBLK").value_or(0) > 0 || cards.number("NDROP").value_or(0) > 0;
    const std::optional<double> sample_seconds = cards.number("TBIN");
    if (!sample_seconds || !(*sample_seconds > 1e-18 && *sample_seconds < 1e9)) {
        cards.refuse("TBIN", "the seconds of a sample");
    }
    const Rational period = Rational::from_double(*sample_seconds, "'" + what + "': TBIN");
    header.rate = {period.denominator, period.numerator};
    header.start_ns = start_of(cards);
    check_block(cards, header);
    return header;
}

bool has_guppi_end(std::string_view bytes) {
    bytes = bytes.substr(0, most_guppi_header_bytes);
    for (; bytes.size() >= card_bytes; bytes.remove_prefix(card_bytes)) {
        if (trimmed(bytes.substr(0, card_bytes)) == "END") {
            return true;
        }
    }
    return false;
}

bool looks_like_guppi(std::string_view bytes) {
    if (bytes.size() < card_bytes) {
        return false;
    }
    // Two cards, so that a text of one line that begins alike is none.
    const auto is_card = [](std::string_view card) {
        return card.size() == card_bytes && card[keyword_bytes] == '=' &&
               is_keyword(trimmed(card.substr(0, keyword_bytes))) &&
               std::all_of(card.begin(), card.end(), [](char c) { return c >= ' ' && c < '\x7F'; });
    };
    return is_card(bytes.substr(0, card_bytes)) && is_card(bytes.substr(card_bytes, card_bytes));
}

}  // namespace echelle
