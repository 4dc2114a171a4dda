#include "coordinator/sources/sigmf_collection.hpp"

#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/sources/sigmf_fields.hpp"

namespace echelle {
namespace {

using nlohmann::json;

constexpr size_t most_collection_bytes = size_t{1} << 20;
constexpr int deepest = 16;

SigmfStream read_stream(const json& item, const std::string& what, const std::string& where) {
    SigmfFields fields(what, where);
    if (!item.is_object()) {
        fields.refuse("name", "an object with name and hash");
    }
    for (const char* key : {"name", "hash"}) {
        if (item.contains(key)) {
            fields.set(key, item.at(key));
        }
    }
    const std::optional<std::string> name = fields.text("name");
    if (!name) {
        fields.refuse_missing("name");
    }
    constexpr std::string_view forbidden("/\\\0", 3);
    if (name->empty() || *name == "." || *name == ".." ||
        name->find_first_of(forbidden) != std::string::npos) {
        fields.refuse("name", "the name of a recording beside the collection, without a folder");
    }
    SigmfStream stream{*name, fields.text("hash")};
    for (const std::string_view ending : {".sigmf-meta", ".sigmf-data"}) {
        if (stream.name.ends_with(ending)) {
            stream.name.resize(stream.name.size() - ending.size());
        }
    }
    return stream;
}

}  // namespace

std::vector<SigmfStream> parse_sigmf_collection(std::string_view text, const std::string& what) {
    const auto refuse = [&what](const std::string& why) {
        throw UsageError("'" + what + "': " + why);
    };
    if (text.size() > most_collection_bytes) {
        refuse("it holds " + std::to_string(text.size()) +
               " bytes, more than a SigMF collection may have here (1 MiB)");
    }
    // Refuses deep nesting, so that taking it apart needs little stack.
    bool too_deep = false;
    const json document = json::parse(
        text,
        [&too_deep](int depth, json::parse_event_t, const json&) {
            too_deep |= depth > deepest;
            return depth <= deepest;
        },
        false);
    if (document.is_discarded() || too_deep || !document.is_object() ||
        !document.contains("collection") || !document.at("collection").is_object()) {
        refuse("it is not a JSON object with an object \"collection\": is it a SigMF collection?");
    }
    const json& collection = document.at("collection");
    if (!collection.contains("core:streams") || !collection.at("core:streams").is_array() ||
        collection.at("core:streams").empty()) {
        refuse("collection has no array core:streams with recordings in it: name a recording");
    }
    std::vector<SigmfStream> streams;
    for (const json& item : collection.at("core:streams")) {
        streams.push_back(
            read_stream(item, what, "core:streams[" + std::to_string(streams.size()) + "]"));
    }
    return streams;
}

}  // namespace echelle
