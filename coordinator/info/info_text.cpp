#include "coordinator/info/info_text.hpp"

#include <cstdio>

#include <nlohmann/json.hpp>

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t most_listed = 10;

void add_row(std::string& text, const char* name, const std::string& value) {
    char start[32];
    std::snprintf(start, sizeof start, "  %-13s", name);
    text += start + value + "\n";
}

std::string plain(const Json& value) {
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string counted(const Json& count, const char* noun) {
    return plain(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string seconds_text(double seconds) {
    char text[40];
    std::snprintf(text, sizeof text, "%.9g s", seconds);
    return text;
}

std::string gaps_text(const Json& gaps) {
    if (gaps.value("count", 0U) == 0) {
        return "none";
    }
    std::string text = counted(gaps["count"], "gap") + ", " + plain(gaps["samples_missing"]) +
                       " samples missing: ";
    size_t listed = 0;
    for (const Json& gap : gaps["first"]) {
        if (listed++ == most_listed) {
            text += ", ...";
            break;
        }
        text += std::string(listed > 1 ? ", " : "") + plain(gap["missing"]) + " after sample " +
                plain(gap["after_sample"]);
    }
    return text;
}

void add_recording(std::string& text, const Json& info) {
    add_row(text, "channels",
            plain(info["channels"]) + (info["complex"] == true ? ", complex" : "") + ", " +
                plain(info["values"]) + " values");
    add_row(text, "rate", plain(info["rate"]) + " Hz");
    add_row(text, "samples",
            plain(info["samples_per_channel"]) + " per channel, " +
                seconds_text(info["duration_s"].get<double>()));
    add_row(text, "begins", info["start"].is_null() ? "not said" : plain(info["start"]));
    add_row(text, "gaps", gaps_text(info["gaps"]));
    if (!info["annotations"].empty()) {
        add_row(text, "annotations", std::to_string(info["annotations"].size()));
    }
}

void add_packets(std::string& text, const Json& info) {
    add_row(text, "begins", info["start"].is_null() ? "not said" : plain(info["start"]));
    add_row(
        text, "datagrams",
        plain(info["datagrams"]) + " of UDP, in " + seconds_text(info["duration_s"].get<double>()));
    for (const Json& flow : info["flows"]) {
        std::string ids;
        for (const Json& id : flow["stream_ids"]) {
            ids += (ids.empty() ? ", stream " : " ") + plain(id);
        }
        const bool is_known = flow["vita49"] != 0 || flow["spead"] != 0;
        add_row(text, "to",
                plain(flow["to"]) + ": " + plain(flow["datagrams"]) + " of " +
                    plain(flow["bytes_least"]) + " to " + plain(flow["bytes_most"]) + " bytes" +
                    (flow["vita49"] != 0 ? ", " + plain(flow["vita49"]) + " VITA 49" : "") +
                    (flow["spead"] != 0 ? ", " + plain(flow["spead"]) + " SPEAD" : "") + ids +
                    (is_known ? "" : ", no framing that tells itself (framing=raw)"));
    }
    for (const auto& [cause, count] : info["left_out"].items()) {
        add_row(text, "left out", plain(count) + " " + cause);
    }
}

void add_spectra(std::string& text, const Json& info) {
    add_row(text, "spectra",
            plain(info["spectra"]) + " of " + counted(info["channels"], "channel") + " (" +
                plain(info["first_channel"]) + " to " + plain(info["last_channel"]) + "), " +
                plain(info["bins"]) + " bins");
    if (!info.contains("rate")) {
        add_row(text, "settings", "not said by version 1.0");
        return;
    }
    add_row(text, "rate",
            plain(info["rate"]) + " Hz, a bin each " + plain(info["bin_spacing_hz"]) + " Hz from " +
                plain(info["first_bin_hz"]) + " Hz");
    add_row(text, "settings",
            "nperseg " + plain(info["nperseg"]) + ", noverlap " + plain(info["noverlap"]) + ", " +
                plain(info["window"]) + ", detrend " + plain(info["detrend"]) + ", " +
                plain(info["scaling"]) + ", " + plain(info["average"]));
    add_row(text, "unit", plain(info["unit"]));
    add_row(text, "begins", plain(info["start"]));
    add_row(text, "last begins", plain(info["last_start"]));
    add_row(text, "over range", plain(info["over_range_samples"]) + " samples");
}

}  // namespace

std::string info_text(const Json& info) {
    std::string text = plain(info["what"]) + "\n";
    if (info["kind"] == "spectra") {
        add_spectra(text, info);
    } else if (info["kind"] == "packets") {
        add_packets(text, info);
    } else {
        add_recording(text, info);
    }
    if (info["remarks"].empty()) {
        add_row(text, "remarks", "none");
    }
    for (const Json& remark : info["remarks"]) {
        add_row(text, "remark", plain(remark));
    }
    return text;
}

}  // namespace echelle
