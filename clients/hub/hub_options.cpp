#include "clients/hub/hub_options.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <CLI/CLI.hpp>

#include "common/error.hpp"
#include "common/feed_interest.hpp"
#include "common/instance.hpp"

namespace echelle {
namespace {

constexpr int most_in_queue = 1'000'000;
constexpr double most_per_second = 1e6;

// What a hub passes on. Not ring/: it speaks of memory of the upstream's machine.
constexpr std::array<std::string_view, 5> relayed_topics{"psd/", "psd16/", "psd8/", "event/",
                                                         "stat/"};

void check_topic(const std::string& prefix) {
    const bool known = std::any_of(
        relayed_topics.begin(), relayed_topics.end(),
        [&prefix](std::string_view name) { return std::string_view(prefix).starts_with(name); });
    if (!known) {
        throw UsageError("--topic '" + prefix +
                         "' is not passed on: give a prefix that begins with psd/, psd16/, psd8/, "
                         "event/ or stat/, such as psd/0000");
    }
}

void check_from(HubOptions& options) {
    if (options.from.find("://") == std::string::npos) {
        options.from_endpoint = feed_endpoint(options.from);
    } else if (options.from.starts_with("ipc://") || is_tcp(options.from)) {
        options.from_endpoint = options.from;
    } else {
        throw UsageError("--from '" + options.from +
                         "' is not possible: give an instance's name, ipc:///PATH or "
                         "tcp://ADDRESS:PORT");
    }
    if (options.from_key.empty() != options.from_server.empty()) {
        throw UsageError(
            "--from-key and --from-server go together: the hub's own keys, and the feed's public "
            "one (echellectl keys)");
    }
    const std::string own = feed_endpoint(options.name);
    const auto& to = options.to.endpoints;
    if (options.from_endpoint == own ||
        std::find(to.begin(), to.end(), options.from_endpoint) != to.end()) {
        throw UsageError("--from '" + options.from +
                         "' is where this hub publishes: it cannot read itself; give another "
                         "--name, or another endpoint");
    }
}

void check(HubOptions& options) {
    check_from(options);
    check_feed_access("--to", options.to);
    if (options.topics.empty()) {
        options.topics = {"psd/", "event/", "stat/"};
    }
    std::for_each(options.topics.begin(), options.topics.end(), check_topic);
}

void declare(CLI::App& app, HubOptions& options, std::string& decimation) {
    app.set_version_flag("--version", "echelle-hub " ECHELLE_VERSION);
    app.set_config("--config", "", "Read options from a TOML file (names without the dashes)");
    app.allow_config_extras(CLI::config_extras_mode::error);
    app.add_option("--from", options.from, "Instance or endpoint to read (echelle)");
    app.add_option("--from-server", options.from_server, "File with the public key of --from");
    app.add_option("--from-key", options.from_key, "File with this hub's own keys, for --from");
    app.add_option("--to", options.to.endpoints,
                   "Endpoint to publish at, besides the one of --name; may be repeated")
        ->take_all();
    app.add_option("--to-key", options.to.key, "File with the keys of the tcp endpoints");
    app.add_option("--to-allow", options.to.allow, "File with the keys of who may subscribe");
    app.add_flag("--to-insecure", options.to.insecure,
                 "A tcp endpoint without keys may leave this machine");
    app.add_option("--name", options.name, "Name under which subscribers find this hub (hub)");
    app.add_option("--topic", options.topics,
                   "Prefix of what is passed on; may be repeated (psd/ event/ stat/)")
        ->take_all();
    app.add_option("--rate", options.rate_hz, "Spectra/s of each topic at most (all)")
        ->check(CLI::Range(1e-6, most_per_second));
    app.add_option("--decimate", decimation, "What --rate leaves: latest or average (latest)")
        ->check(CLI::IsMember({"latest", "average"}));
    app.add_option("--queue", options.queue_messages,
                   "Messages that may wait for the hub, and for each subscriber (1000)")
        ->check(CLI::Range(1, most_in_queue));
    app.add_option("--report", options.report, "Write what was counted to a JSON file");
    app.add_flag("--until-end", options.until_end, "End with the run that is read");
    app.add_flag("--quiet", options.quiet, "Only errors");
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

ParsedHubOptions parse_hub_options(int argc, char** argv) {
    ParsedHubOptions parsed;
    HubOptions& options = parsed.options;
    CLI::App app("Passes a feed on to many subscribers and other machines", "echelle-hub");
    std::string decimation;
    declare(app, options, decimation);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        return {.run = false, .text = app.help(), .options = {}};
    } catch (const CLI::CallForVersion&) {
        return {.run = false, .text = app.version() + "\n", .options = {}};
    } catch (const CLI::ParseError& error) {
        throw UsageError(one_line(error.what()) + "; --help lists the options");
    }
    if (!decimation.empty() && options.rate_hz == 0) {
        throw UsageError("--decimate " + decimation + " needs --rate: how many spectra/s are left");
    }
    options.decimation = decimation == "average" ? Decimation::average : Decimation::latest;
    check(options);
    return parsed;
}

}  // namespace echelle
