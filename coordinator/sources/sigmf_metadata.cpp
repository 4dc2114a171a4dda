#include "coordinator/sources/sigmf_metadata.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/sources/sigmf_fields.hpp"

namespace echelle {
namespace {

using nlohmann::json;

// Known fields, by the object that they stand in. Nothing else is kept while the text is read.
constexpr std::array global_keys = {"core:datatype",
                                    "core:version",
                                    "core:num_channels",
                                    "core:sample_rate",
                                    "core:offset",
                                    "core:dataset",
                                    "core:trailing_bytes",
                                    "core:metadata_only",
                                    "core:extensions",
                                    "core:sha512",
                                    "echelle:samples_per_frame",
                                    "echelle:epoch_ns",
                                    "echelle:over_range_low",
                                    "echelle:over_range_high",
                                    "echelle:unfinished"};
constexpr std::array capture_keys = {"core:sample_start", "core:global_index",
                                     "core:header_bytes", "core:frequency",
                                     "core:datetime",     "echelle:gap_before"};
constexpr std::array extension_keys = {"name", "optional"};

constexpr std::array<std::pair<std::string_view, ValueCoding>, 6> codings = {{
    {"i16_le", ValueCoding::int16_little},
    {"i16_be", ValueCoding::int16_big},
    {"u16_le", ValueCoding::uint16_little},
    {"u16_be", ValueCoding::uint16_big},
    {"i8", ValueCoding::int8},
    {"u8", ValueCoding::uint8},
}};

bool is_sigmf_datatype(std::string_view text) {
    if (!text.starts_with('r') && !text.starts_with('c')) {
        return false;
    }
    const std::string_view type = text.substr(1);
    if (type == "i8" || type == "u8") {
        return true;
    }
    const bool ordered = type.ends_with("_le") || type.ends_with("_be");
    const std::string_view value = type.substr(0, type.size() - std::min<size_t>(3, type.size()));
    constexpr std::array values = {"f32", "f64", "i32", "i16", "u32", "u16"};
    return ordered && std::find(values.begin(), values.end(), value) != values.end();
}

void read_datatype(const SigmfFields& global, SigmfMetadata& metadata) {
    const std::optional<std::string> datatype = global.text("core:datatype");
    if (!datatype) {
        global.refuse_missing("core:datatype");
    }
    if (!is_sigmf_datatype(*datatype)) {
        global.refuse("core:datatype", "a SigMF datatype such as ri16_le or ci16_le");
    }
    const bool is_complex = datatype->starts_with('c');
    const std::string_view value = std::string_view(*datatype).substr(1);
    metadata.format = is_complex ? SampleFormat::ci16 : SampleFormat::i16;
    const auto* const coding =
        std::find_if(codings.begin(), codings.end(),
                     [value](const auto& known) { return known.first == value; });
    if (coding == codings.end()) {
        global.refuse("core:datatype",
                      std::string("integers of 8 or 16 bits: convert the samples to ") +
                          (is_complex ? "ci16_le" : "ri16_le"));
    }
    metadata.coding = coding->second;
}

void check_version(const SigmfFields& global) {
    const std::optional<std::string> version = global.text("core:version");
    if (!version) {
        global.refuse_missing("core:version");
    }
    // 0.x files name these fields alike.
    if (!version->starts_with("1.") && !version->starts_with("0.")) {
        global.refuse("core:version", "version 1.x of SigMF");
    }
}

void read_dataset(const SigmfFields& global, SigmfMetadata& metadata) {
    metadata.dataset = global.text("core:dataset");
    metadata.metadata_only = global.flag("core:metadata_only").value_or(false);
    if (!metadata.dataset) {
        return;
    }
    constexpr std::string_view forbidden("/\\\0", 3);
    const std::string& name = *metadata.dataset;
    if (name.empty() || name == "." || name == ".." ||
        name.find_first_of(forbidden) != std::string::npos) {
        global.refuse("core:dataset", "the name of a file beside the metadata, without a folder");
    }
}

void read_sha512(const SigmfFields& global, SigmfMetadata& metadata) {
    constexpr size_t digits = 128;
    metadata.sha512 = global.text("core:sha512");
    if (metadata.sha512 &&
        (metadata.sha512->size() != digits ||
         metadata.sha512->find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)) {
        global.refuse("core:sha512", "128 hexadecimal digits");
    }
}

// A whole number within the limits of a type.
template <typename T>
std::optional<T> whole_number(const SigmfFields& fields, const std::string& key) {
    const std::optional<double> value = fields.number(key);
    constexpr auto least = static_cast<double>(std::numeric_limits<T>::min());
    constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
    if (value && (*value < least || *value > most || *value != std::floor(*value))) {
        fields.refuse(key, "a whole number from " + std::to_string(std::numeric_limits<T>::min()) +
                               " to " + std::to_string(std::numeric_limits<T>::max()));
    }
    return value ? std::optional(static_cast<T>(*value)) : std::nullopt;
}

void read_own_fields(const SigmfFields& global, SigmfOwnFields& own) {
    own.samples_per_frame = whole_number<uint32_t>(global, "echelle:samples_per_frame");
    own.over_range_low = whole_number<int16_t>(global, "echelle:over_range_low");
    own.over_range_high = whole_number<int16_t>(global, "echelle:over_range_high");
    if (own.over_range_low && own.over_range_high && *own.over_range_low >= *own.over_range_high) {
        global.refuse("echelle:over_range_high", "more than echelle:over_range_low");
    }
    own.unfinished = global.flag("echelle:unfinished").value_or(false);
    const std::optional<uint64_t> epoch_ns = global.count("echelle:epoch_ns");
    if (epoch_ns && *epoch_ns > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        global.refuse("echelle:epoch_ns", "nanoseconds of Unix time, before the year 2262");
    }
    own.epoch_ns = epoch_ns;
}

void read_global(const SigmfFields& global, SigmfMetadata& metadata) {
    check_version(global);
    read_datatype(global, metadata);
    const uint64_t channels = global.count("core:num_channels").value_or(1);
    if (channels < 1 || channels > std::numeric_limits<uint16_t>::max() + uint64_t{1}) {
        global.refuse("core:num_channels", "1 to 65536");
    }
    metadata.channels = static_cast<uint32_t>(channels);
    metadata.sample_rate = global.rate("core:sample_rate");
    metadata.offset = global.count("core:offset").value_or(0);
    metadata.trailing_bytes = global.count("core:trailing_bytes").value_or(0);
    read_dataset(global, metadata);
    read_sha512(global, metadata);
    read_own_fields(global, metadata.own);
}

SigmfCapture read_capture(const SigmfFields& fields) {
    SigmfCapture capture;
    const std::optional<uint64_t> sample_start = fields.count("core:sample_start");
    if (!sample_start) {
        fields.refuse_missing("core:sample_start");
    }
    capture.sample_start = *sample_start;
    capture.global_index = fields.count("core:global_index");
    capture.header_bytes = fields.count("core:header_bytes").value_or(0);
    capture.frequency = fields.number("core:frequency");
    capture.epoch_ns = fields.datetime("core:datetime");
    capture.gap_before = fields.flag("echelle:gap_before").value_or(false);
    return capture;
}

void check_extension(const SigmfFields& fields) {
    const std::optional<std::string> name = fields.text("name");
    if (!name) {
        fields.refuse_missing("name");
    }
    const std::optional<bool> optional = fields.flag("optional");
    if (!optional) {
        fields.refuse_missing("optional");
    }
    if (!*optional) {
        fields.refuse("name",
                      "no extension that must be understood (optional: false); if the samples "
                      "can be read without it, set it to optional: true");
    }
}

// Annotations as they are read, up to a bound: a huge list of them costs no memory.
class AnnotationList {
  public:
    void begin() { item_ = json::object(); }
    void set(const std::string& key, json value) {
        constexpr size_t longest_text = 500;
        if (value.is_string() && value.get_ref<const std::string&>().size() > longest_text) {
            value = value.get_ref<const std::string&>().substr(0, longest_text) + "...";
        }
        if (item_.size() < most_fields) {
            item_[key] = std::move(value);
        }
    }
    void end() {
        const std::string text = item_.dump(-1, ' ', true, json::error_handler_t::replace);
        if (count_ >= most_annotations || text_.size() + text.size() > most_bytes) {
            ++left_out_;
            return;
        }
        text_ += (text_.empty() ? "[" : ",") + text;
        ++count_;
    }
    std::string text() const { return text_.empty() ? text_ : text_ + "]"; }
    uint64_t left_out() const { return left_out_; }

  private:
    static constexpr size_t most_annotations = 1000;
    static constexpr size_t most_bytes = 256 * 1024;
    static constexpr size_t most_fields = 64;

    json item_;
    std::string text_;
    size_t count_ = 0;
    uint64_t left_out_ = 0;
};

// Receives the JSON text piece by piece and keeps the known fields only, so that neither a huge
// list of annotations nor deep nesting costs memory or stack.
class MetadataHandler : public nlohmann::json_sax<json> {
  public:
    MetadataHandler(std::string_view text, std::string what)
        : text_(text), what_(std::move(what)), fields_(what_, "global") {}

    SigmfMetadata take() {
        if (!global_seen_) {
            refuse("there is no object \"global\": is it SigMF metadata?");
        }
        if (!captures_seen_) {
            refuse(
                "there is no array \"captures\": add \"captures\": [] for one capture that "
                "begins with the file");
        }
        if (metadata_.captures.empty()) {
            metadata_.captures.emplace_back();  // what an empty array means, by the specification
            metadata_.captures[0].sample_start = metadata_.offset;
        }
        metadata_.annotations = annotations_.text();
        metadata_.annotations_left_out = annotations_.left_out();
        if (backward_times_ > 0) {
            metadata_.remarks.push_back(
                "core:datetime of " + first_backward_ +
                (backward_times_ > 1 ? " and " + std::to_string(backward_times_ - 1) + " others"
                                     : "") +
                " is not after the capture before it: only the first capture's is used");
        }
        return std::move(metadata_);
    }

    bool null() override { return scalar(nullptr); }
    bool boolean(bool value) override { return scalar(value); }
    bool number_integer(number_integer_t value) override { return scalar(value); }
    bool number_unsigned(number_unsigned_t value) override { return scalar(value); }
    bool number_float(number_float_t value, const string_t&) override { return scalar(value); }
    bool string(string_t& value) override {
        // Only a field that is kept is worth the copy.
        return known_key() ? scalar(value) : scalar(nullptr);
    }
    bool binary(binary_t&) override { return scalar(nullptr); }  // JSON text has none
    bool key(string_t& value) override {
        key_ = value.size() <= longest_key ? value : std::string();
        return true;
    }
    bool start_object(size_t) override { return open(true); }
    bool start_array(size_t) override { return open(false); }
    bool end_object() override { return close(); }
    bool end_array() override { return close(); }

    bool parse_error(size_t position, const std::string&, const json::exception&) override {
        const size_t seen = std::min(position, text_.size());
        const auto lines = std::count(text_.begin(), text_.begin() + seen, '\n');
        refuse("it is not valid JSON at byte " + std::to_string(position) + " (line " +
               std::to_string(lines + 1) + "): correct it");
    }

  private:
    enum class Place {
        document,
        global,
        extensions,
        extension,
        captures,
        capture,
        annotations,
        annotation,
        ignored
    };

    static constexpr size_t deepest = 64;
    static constexpr size_t longest_key = 64;

    [[noreturn]] void refuse(const std::string& why) const {
        throw UsageError("'" + what_ + "': " + why);
    }

    Place place() const { return places_.back(); }

    bool known_key() const {
        const auto among = [this](const auto& keys) {
            return std::find(keys.begin(), keys.end(), key_) != keys.end();
        };
        switch (places_.empty() ? Place::ignored : place()) {
            case Place::global:
                return among(global_keys);
            case Place::capture:
                return among(capture_keys);
            case Place::extension:
                return among(extension_keys);
            case Place::annotation:
                return !key_.empty();
            default:
                return false;
        }
    }

    SigmfFields& fields() { return place() == Place::global ? fields_ : item_; }

    bool scalar(json value) {
        if (places_.empty()) {
            refuse("it is not a JSON object: is it SigMF metadata?");
        }
        check_structure(false, false);
        if (place() == Place::annotation) {
            if (known_key()) {
                annotations_.set(key_, std::move(value));
            }
        } else if (known_key()) {
            fields().set(key_, std::move(value));
        }
        return true;
    }

    // Refuses what stands where only an object or only an array may.
    void check_structure(bool is_object, bool is_array) const {
        if (place() == Place::document && key_ == "global" && !is_object) {
            refuse("\"global\" is not an object");
        }
        if (place() == Place::document && key_ == "captures" && !is_array) {
            refuse("\"captures\" is not an array");
        }
        if ((place() == Place::captures || place() == Place::extensions) && !is_object) {
            refuse(item_name() + " is not an object");
        }
    }

    std::string item_name() const {
        return (place() == Place::captures ? "captures[" : "core:extensions[") +
               std::to_string(place() == Place::captures ? metadata_.captures.size()
                                                         : extensions_) +
               "]";
    }

    bool open(bool is_object) {
        if (places_.size() >= deepest) {
            refuse("it nests deeper than " + std::to_string(deepest) + " levels");
        }
        if (places_.empty() && !is_object) {
            refuse("it is not a JSON object: is it SigMF metadata?");
        }
        places_.push_back(places_.empty() ? Place::document : place_inside(is_object));
        return true;
    }

    Place place_inside(bool is_object) {
        check_structure(is_object, !is_object);
        switch (place()) {
            case Place::document:
                return is_object || key_ != "annotations" ? place_in_document()
                                                          : Place::annotations;
            case Place::annotations:
                annotations_.begin();
                return is_object ? Place::annotation : Place::ignored;
            case Place::annotation:
                return Place::ignored;
            case Place::captures:
                item_ = SigmfFields(what_, item_name());
                return Place::capture;
            case Place::extensions:
                item_ = SigmfFields(what_, item_name());
                ++extensions_;
                return Place::extension;
            default:
                break;
        }
        if (place() == Place::global && key_ == "core:extensions" && !is_object) {
            extensions_ = 0;
            return Place::extensions;
        }
        if (known_key()) {
            fields().set(key_, is_object ? json::object() : json::array());
        }
        return Place::ignored;
    }

    Place place_in_document() {
        if (key_ == "global") {
            refuse_twice(global_seen_);
            return Place::global;
        }
        if (key_ == "captures") {
            refuse_twice(captures_seen_);
            return Place::captures;
        }
        return Place::ignored;
    }

    void refuse_twice(bool& seen) const {
        if (seen) {
            refuse("\"" + key_ + "\" stands there twice: remove one");
        }
        seen = true;
    }

    bool close() {
        const Place closed = place();
        places_.pop_back();
        if (closed == Place::global) {
            if (fields_.has("core:extensions")) {
                fields_.refuse("core:extensions", "an array of objects");
            }
            read_global(fields_, metadata_);
        } else if (closed == Place::extension) {
            check_extension(item_);
        } else if (closed == Place::capture) {
            append(read_capture(item_));
        } else if (closed == Place::annotation) {
            annotations_.end();
        }
        return true;
    }

    void append(const SigmfCapture& capture) {
        std::vector<SigmfCapture>& captures = metadata_.captures;
        if (!captures.empty() && capture.sample_start < captures.back().sample_start) {
            item_.refuse("core:sample_start", "at least the one before it, " +
                                                  std::to_string(captures.back().sample_start) +
                                                  ": SigMF sorts captures");
        }
        if (!captures.empty()) {
            check_times(captures.back(), capture);
        }
        captures.push_back(capture);
    }

    // Time that stands still or runs backward (sdrangel issue 2325) is used for nothing here.
    void check_times(const SigmfCapture& before, const SigmfCapture& capture) {
        if (before.epoch_ns && capture.epoch_ns && capture.sample_start > before.sample_start &&
            *capture.epoch_ns <= *before.epoch_ns && backward_times_++ == 0) {
            first_backward_ = "captures[" + std::to_string(metadata_.captures.size()) + "]";
        }
    }

    std::string_view text_;
    std::string what_;
    SigmfMetadata metadata_;
    std::vector<Place> places_;
    std::string key_;  // of the value that comes next, when the place is an object
    SigmfFields fields_;
    SigmfFields item_{"", ""};
    size_t extensions_ = 0;
    AnnotationList annotations_;
    size_t backward_times_ = 0;
    std::string first_backward_;
    bool global_seen_ = false;
    bool captures_seen_ = false;
};

}  // namespace

SigmfMetadata parse_sigmf_metadata(std::string_view text, const std::string& what) {
    if (text.size() > most_sigmf_metadata_bytes) {
        throw UsageError("'" + what + "' holds " + std::to_string(text.size()) +
                         " bytes, more than SigMF metadata may have here (" +
                         std::to_string(most_sigmf_metadata_bytes) +
                         "): is it the data file? Else remove annotations");
    }
    MetadataHandler handler(text, what);
    json::sax_parse(text.begin(), text.end(), &handler);
    return handler.take();
}

}  // namespace echelle
