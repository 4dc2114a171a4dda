#include "coordinator/sources/recording.hpp"

#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "coordinator/sources/stream_options.hpp"

namespace echelle {
namespace {

constexpr size_t most_listed_gaps = 1000;

}  // namespace

uint64_t Recording::total_samples() const {
    return std::accumulate(
        pieces.begin(), pieces.end(), uint64_t{0},
        [](uint64_t sum, const SamplePiece& piece) { return sum + piece.samples; });
}

uint64_t Recording::longest_stretch() const {
    uint64_t longest = 0;
    uint64_t stretch = 0;
    for (const SamplePiece& piece : pieces) {
        stretch = piece.samples + (piece.gap_before ? 0 : stretch);
        longest = std::max(longest, stretch);
    }
    return longest;
}

size_t Recording::gaps() const {
    return static_cast<size_t>(std::count_if(
        pieces.begin(), pieces.end(), [](const SamplePiece& piece) { return piece.gap_before; }));
}

std::string Recording::describe() const {
    std::string text = name + ": " + text_of(stream) + ", " + coding + " values, " +
                       std::to_string(total_samples()) + " samples per channel";
    const size_t count = gaps();
    if (count > 0) {
        text += ", " + std::to_string(count) + (count == 1 ? " gap" : " gaps");
    }
    for (const std::string& remark : remarks) {
        text += "; " + remark;
    }
    return text;
}

nlohmann::json Recording::facts() const {
    nlohmann::json facts;
    facts["name"] = name;
    facts["coding"] = coding;
    facts["samples_per_channel"] = total_samples();
    facts["longest_stretch"] = longest_stretch();
    nlohmann::json& listed = facts["gaps"]["first"] = nlohmann::json::array();
    uint64_t position = 0;
    uint64_t missing = 0;
    for (const SamplePiece& piece : pieces) {
        if (piece.gap_before && listed.size() < most_listed_gaps) {
            listed.push_back({{"after_sample", position}, {"missing", piece.samples_missing}});
        }
        position += piece.samples_missing + piece.samples;
        missing += piece.samples_missing;
    }
    facts["gaps"]["count"] = gaps();
    facts["gaps"]["samples_missing"] = missing;
    facts["remarks"] = remarks;
    if (!annotations.empty()) {
        facts["annotations"] = nlohmann::json::parse(annotations);
        facts["annotations_left_out"] = annotations_left_out;
    }
    return facts;
}

}  // namespace echelle
