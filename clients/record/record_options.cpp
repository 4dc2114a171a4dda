#include "clients/record/record_options.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "common/error.hpp"
#include "common/instance.hpp"

namespace echelle::record {
namespace {

constexpr const char* about =
    "Writes the spectra of a running coordinator, or of a recording, into an HDF5 file that can be "
    "read while it grows.";

struct Arguments {
    std::string name;
    std::string endpoint;
    std::vector<uint32_t> channels;
    std::string transport = "auto";
    uint64_t queue_mib = 256;
};

void declare(CLI::App& app, RecordOptions& options, Arguments& arguments) {
    constexpr double longest = 1e9;
    app.add_option("FILE", options.writer.path, "The file; one that is there is continued")
        ->required();
    auto* name = app.add_option("--name", arguments.name, "Instance name (echelle)");
    auto* endpoint =
        app.add_option("--endpoint", arguments.endpoint, "Feed endpoint, instead of the instance's")
            ->excludes(name);
    app.add_option("--from", options.recording,
                   "Read this recording (of --record) instead of a feed")
        ->excludes(name)
        ->excludes(endpoint);
    app.add_option("--channels", arguments.channels, "Channels, as 0,3,7 (all)")
        ->delimiter(',')
        ->allow_extra_args(false);  // FILE may follow
    app.add_option("--transport", arguments.transport,
                   "auto, ring (shared memory) or feed (messages)")
        ->check(CLI::IsMember({"auto", "ring", "feed"}));
    auto* server_key = app.add_option("--server-key", options.feed.server_key_file,
                                      "Public key of a tcp feed (NAME.pub)");
    auto* key = app.add_option("--key", options.feed.key_file, "Own secret key (NAME.key)");
    server_key->needs(key);
    key->needs(server_key);
    app.add_option("--wait", options.feed.wait_seconds, "Seconds to wait for the feed (10)")
        ->check(CLI::Range(0.0, longest));
    app.add_option("--compression", options.writer.file.level, "Deflate level, 0 (none) to 9 (1)")
        ->check(CLI::Range(0, 9));
    app.add_option("--flush-seconds", options.writer.file.flush_seconds,
                   "In which rows stand in the file, for readers and if it is killed (1)")
        ->check(CLI::Range(0.01, longest));
    app.add_option("--roll-seconds", options.writer.roll.seconds,
                   "Begin a file after so many seconds of the stream")
        ->check(CLI::Range(0.001, longest));
    app.add_option("--roll-bytes", options.writer.roll.bytes, "Begin a file after so many bytes")
        ->check(CLI::Range(uint64_t{65'536}, uint64_t{1} << 62));
    app.add_option("--queue-mib", arguments.queue_mib,
                   "MiB of rows that may wait for the disk (256)")
        ->check(CLI::Range(1, 1 << 20));
    app.add_option("--duration", options.duration_seconds, "Seconds to record")
        ->check(CLI::Range(0.001, longest));
    app.add_option("--spectra", options.rows, "Spectra to record, of each channel")
        ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 62));
    app.add_option("--report", options.report, "Write what was done as JSON");
    app.add_flag("--quiet", options.writer.quiet, "Say nothing but errors");
}

void check_folder(const std::string& path) {
    const auto parent = std::filesystem::path(path).parent_path();
    const std::string folder = parent.empty() ? "." : parent.string();
    if (access(folder.c_str(), W_OK | X_OK) != 0) {
        throw UsageError("cannot write into " + folder + ": " + errno_text() +
                         "; name a file in a directory that you can write");
    }
}

std::string one_line(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c >= 0 && c < ' '; }, ' ');
    return text;
}

}  // namespace

std::optional<RecordOptions> parse_record_options(int argc, char** argv) {
    RecordOptions options;
    Arguments arguments;
    CLI::App app(about, "echelle-record");
    app.set_version_flag("--version", std::string("echelle-record ") + ECHELLE_VERSION);
    declare(app, options, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        return std::nullopt;
    } catch (const CLI::CallForVersion&) {
        std::printf("echelle-record %s\n", ECHELLE_VERSION);
        return std::nullopt;
    } catch (const CLI::RequiredError& error) {
        const std::vector<std::string> unknown = app.remaining();
        throw UsageError(
            (unknown.empty() ? error.what() : "there is no option '" + unknown.front() + "'") +
            std::string(" (see --help)"));
    } catch (const CLI::Error& error) {
        throw UsageError(one_line(error.what()) + " (see --help)");
    }
    const std::string name = arguments.name.empty() ? default_instance_name : arguments.name;
    instance_directory(name);  // refuses what is no name
    options.feed.target = arguments.endpoint.empty() ? name : arguments.endpoint;
    if (!arguments.endpoint.empty() && arguments.endpoint.find("://") == std::string::npos) {
        throw UsageError("endpoint '" + arguments.endpoint +
                         "' is none: give ipc:///path or tcp://ADDRESS:PORT, or --name INSTANCE");
    }
    if (!arguments.channels.empty()) {
        std::vector<uint32_t>& channels = arguments.channels;
        std::sort(channels.begin(), channels.end());
        channels.erase(std::unique(channels.begin(), channels.end()), channels.end());
        options.feed.channels = channels;
    }
    options.feed.transport = arguments.transport == "ring"   ? Transport::ring
                             : arguments.transport == "feed" ? Transport::feed
                                                             : Transport::automatic;
    if (options.feed.transport == Transport::ring && options.feed.channels) {
        throw UsageError(
            "--transport ring reads all channels: leave out --channels, or --transport");
    }
    check_folder(options.writer.path);
    options.writer.queue_bytes = arguments.queue_mib << 20;
    return options;
}

}  // namespace echelle::record
