// One row for each number of a source's facts that is worth a metric: where it stands there, and
// what it is called here. A source without such a number has no such metric.
#include <nlohmann/json.hpp>

#include "coordinator/metrics/metrics_families.hpp"

namespace echelle {
namespace {

enum class Kind { counter, counters_by_cause, gauge };

struct SourceMetric {
    const char*
        place;  // JSON pointer (RFC 6901) to the number, or to the object of numbers by cause
    const char* name;  // behind echelle_source_
    const char* help;
    const char* cause = nullptr;  // value of the label `cause`, for a number that has one
    Kind kind = Kind::counter;
};

constexpr const char* framing_help = "Troubles with the headers and checksums of a card's frames.";

constexpr SourceMetric metrics[] = {
    {"/frames", "frames_total", "Frames that the source gave."},
    {"/frames/written", "frames_total", "Frames that the source gave."},
    {"/frames/cut_short", "frames_cut_short_total", "Frames that a gap ended early."},
    {"/lost", "frames_lost_total", "Frames that never reached the ring, by cause.", nullptr,
     Kind::counters_by_cause},
    {"/repeated", "frames_repeated_total", "Frames that came twice."},
    {"/stale", "frames_stale_total", "Frames left over from before the start."},
    {"/restarts", "restarts_total", "Times that the sender began to count anew."},
    {"/packets/restarts", "restarts_total", "Times that the sender began to count anew."},
    {"/flags", "frame_flags_total", "Frames that the card itself has marked, by mark.", nullptr,
     Kind::counters_by_cause},
    {"/framing/skipped_bytes", "skipped_bytes_total", "Bytes between frames that belong to none."},
    {"/framing/resynchronised", "resynchronised_total", "Times that the next frame was searched."},
    {"/framing/bad_header_crc", "framing_faults_total", framing_help, "bad_header_crc"},
    {"/framing/unknown_version", "framing_faults_total", framing_help, "unknown_version"},
    {"/framing/impossible_header", "framing_faults_total", framing_help, "impossible_header"},
    {"/framing/other_shape", "framing_faults_total", framing_help, "other_shape"},
    {"/framing/bad_data_crc", "framing_faults_total", framing_help, "bad_data_crc"},
    {"/framing/torn", "framing_faults_total", framing_help, "torn"},
    {"/framing/without_checksum", "frames_without_checksum_total",
     "Frames whose card gives no checksum of the samples."},
    {"/reads/count", "reads_total", "Reads of the device."},
    {"/reads/bytes", "read_bytes_total", "Bytes read from the device."},
    {"/reads/copied_bytes", "copied_bytes_total", "Bytes that had to be moved after their read."},
    {"/reads/short", "reads_short_total", "Reads that gave less than asked for."},
    {"/reads/empty", "reads_empty_total", "Reads that gave nothing."},
    {"/reads/silences", "silences_total", "Times that the device gave nothing for too long."},
    {"/trouble", "troubles_total", "Troubles of the device, by cause.", nullptr,
     Kind::counters_by_cause},
    {"/troubles", "troubles_total", "Troubles of the device, by cause.", nullptr,
     Kind::counters_by_cause},
    {"/opened", "opened_total", "Times that the device was opened."},
    {"/reopened", "reopened_total", "Times that the device or socket was opened again."},
    {"/failed_opens", "failed_opens_total", "Times that opening it again failed."},
    {"/threads_left_behind", "threads_left_behind", "Threads that a driver has not let go.",
     nullptr, Kind::gauge},
    {"/measured_rate_hz", "measured_rate_hertz",
     "Samples per second of each channel, by our clock.", nullptr, Kind::gauge},
    {"/rate_deviation", "rate_deviation_ratio", "Measured rate / nominal rate - 1.", nullptr,
     Kind::gauge},
    {"/datagrams/received", "datagrams_total", "Datagrams received."},
    {"/datagrams/bytes", "datagram_bytes_total", "Bytes of the datagrams received."},
    {"/datagrams/malformed", "datagrams_malformed_total", "Datagrams not used, by fault.", nullptr,
     Kind::counters_by_cause},
    {"/datagrams/passed_over", "datagrams_passed_over_total",
     "Datagrams that are well but not for us, by reason.", nullptr, Kind::counters_by_cause},
    {"/packets/delivered", "packets_delivered_total", "Packets whose samples were used."},
    {"/packets/lost", "packets_lost_total", "Packets that never came, by their numbers."},
    {"/packets/reordered", "packets_reordered_total", "Packets put back into order."},
    {"/packets/duplicates", "packets_duplicate_total", "Packets that came twice."},
    {"/packets/late", "packets_late_total", "Packets that came after they were given up."},
    {"/packets/strays", "packets_stray_total", "Packets whose numbers fit nowhere."},
    {"/packets/over_range", "packets_over_range_total", "Packets marked as over range."},
    {"/packets/held", "packets_held", "Packets that wait for one before them.", nullptr,
     Kind::gauge},
    {"/samples", "samples_total", "Samples of each channel received."},
    {"/samples/received", "samples_total", "Samples of each channel received."},
    {"/samples/missing", "samples_missing_total", "Samples of each channel missing, by cause.",
     nullptr, Kind::counters_by_cause},
    {"/gaps", "gaps_total", "Gaps in the stream."},
    {"/samples/gaps", "gaps_total", "Gaps in the stream."},
    {"/receive_queue/overflow", "receive_queue_overflow_total",
     "Datagrams that the kernel dropped because its queue was full."},
    {"/receive_queue/bytes", "receive_queue_bytes", "Length of the kernel's queue.", nullptr,
     Kind::gauge},
    {"/capture", "capture_file_faults_total", "Troubles of a packet capture's file, by fault.",
     nullptr, Kind::counters_by_cause},
    {"/samples_per_channel", "recording_samples", "Samples of each channel in the recording.",
     nullptr, Kind::gauge},
    {"/gaps/count", "recording_gaps", "Gaps in the recording.", nullptr, Kind::gauge},
    {"/gaps/samples_missing", "recording_samples_missing",
     "Samples of each channel that the recording lacks.", nullptr, Kind::gauge},
    {"/replay/passes_done", "replay_passes_total", "Times that the recording was played."},
    {"/replay/late_frames", "replay_late_frames_total", "Frames that were played too late."},
};

// VITA 49 streams that are joined into one: an array, with an object for each.
void add_joined_streams(FamilyList& list, const nlohmann::json& facts) {
    const auto streams = facts.find("streams");
    if (streams == facts.end() || !streams->is_array()) {
        return;
    }
    for (const nlohmann::json& stream : *streams) {
        const std::string id = stream.at("id").dump();
        for (const char* cause : {"received", "joined", "duplicates", "late", "alone", "absent"}) {
            list.counter("echelle_source_stream_packets_total",
                         "Packets of each of several joined streams, by what became of them.",
                         stream.at(cause).get<double>(), {{"stream", id}, {"cause", cause}});
        }
    }
}

void add(FamilyList& list, const SourceMetric& metric, const nlohmann::json& value,
         const MetricLabels& labels) {
    if (!value.is_number()) {
        return;  // of another kind of source: there the place holds something else
    }
    const std::string name = std::string("echelle_source_") + metric.name;
    if (metric.kind == Kind::gauge) {
        list.gauge(name, metric.help, value.get<double>(), labels);
    } else {
        list.counter(name, metric.help, value.get<double>(), labels);
    }
}

}  // namespace

void add_source_families(FamilyList& list, const nlohmann::json& facts) {
    for (const SourceMetric& metric : metrics) {
        const nlohmann::json::json_pointer place(metric.place);
        if (!facts.contains(place)) {
            continue;
        }
        const nlohmann::json& value = facts[place];
        if (metric.kind != Kind::counters_by_cause) {
            const bool has_cause = metric.cause != nullptr;
            add(list, metric, value,
                has_cause ? MetricLabels{{"cause", metric.cause}} : MetricLabels{});
        } else if (value.is_object()) {
            for (const auto& [cause, count] : value.items()) {
                add(list, metric, count, {{"cause", cause}});
            }
        }
    }
    add_joined_streams(list, facts);
}

}  // namespace echelle
