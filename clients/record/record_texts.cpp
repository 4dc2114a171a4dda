#include "clients/record/record_texts.hpp"

#include <cstdio>
#include <fstream>

#include <nlohmann/json.hpp>

#include "common/error.hpp"

namespace echelle::record {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t channels_most = 65'536;

// Causes that nothing was dropped for are left out.
Json dropped_of(const RecordReport& report) {
    const ReceivedBooks& in = report.received;
    const WrittenBooks& out = report.written;
    const std::pair<const char*, uint64_t> causes[] = {{"bad_packet", in.bad_packet},
                                                       {"no_trailer", in.no_trailer},
                                                       {"other_shape", in.other_shape},
                                                       {"unknown_channel", in.unknown_channel},
                                                       {"late", in.late},
                                                       {"repeated", in.repeated},
                                                       {"queue_full", in.queue_full},
                                                       {"surplus", in.surplus},
                                                       {"disk_full", out.disk_full},
                                                       {"write_failed", out.write_failed}};
    Json dropped = Json::object();
    for (const auto& [name, count] : causes) {
        if (count > 0) {
            dropped[name] = count;
        }
    }
    return dropped;
}

}  // namespace

uint32_t channels_in_hello(const std::string& hello) {
    const Json text = Json::parse(hello, nullptr, false);
    const auto number = [&](const char* name) {
        return text.is_object() && text.contains(name) && text[name].is_number_unsigned()
                   ? text[name].get<uint64_t>()
                   : 0;
    };
    if (number("feed") != 1 || number("channels") == 0 || number("channels") > channels_most) {
        throw RunError("what says hello there is not a feed of version 1 (docs/feed.md)");
    }
    return static_cast<uint32_t>(number("channels"));
}

void write_report(const std::string& path, const RecordReport& report) {
    Json text;
    text["input"] = report.input;
    text["failure"] = report.failure.empty() ? Json(nullptr) : Json(report.failure);
    text["wall_s"] = report.wall_seconds;
    text["spectra"] = {{"received", report.received.received},
                       {"written", report.written.written},
                       {"dropped", dropped_of(report)},
                       {"missed", report.received.missed}};
    text["rows"] = {{"written", report.written.rows},
                    {"incomplete", report.written.rows_incomplete}};
    text["files"] = Json::array();
    for (const FileEntry& file : report.written.files) {
        text["files"].push_back({{"path", file.path},
                                 {"rows_before", file.rows_before},
                                 {"rows", file.rows},
                                 {"bytes", file.bytes}});
    }
    std::ofstream file(path);
    file << text.dump(2, ' ', false, Json::error_handler_t::replace) << '\n';
    file.close();
    if (!file) {
        throw RunError("cannot write the report " + path);
    }
}

}  // namespace echelle::record
