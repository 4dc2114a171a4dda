#include "clients/mqtt/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

// GCC 12 suspects a null pointer in libstdc++ where CLI11 moves strings about.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wnull-dereference"
#include <CLI/CLI.hpp>
#pragma GCC diagnostic pop
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

constexpr const char* password_variable = "ECHELLE_MQTT_PASSWORD";
constexpr uint32_t most_channels = 65'536;
constexpr size_t longest_name = 64;
constexpr size_t longest_topic_prefix = 200;
constexpr size_t longest_client_id = 128;
constexpr size_t longest_password = 65'535;  // MQTT's own limit

// As CLI11 gives it, before it is understood.
struct Typed {
    std::string broker = "mqtt://localhost:1883";
    std::string password_file;
    std::string protocol = "5";
    int qos = 0;
    std::string reconnect = "1..60";
    std::string channels = "all";
    std::vector<std::string> bands;
    std::string spectra = "none";
    std::string rate = "10";
};

// The whole text as a number.
template <typename Number>
std::optional<Number> number_of(const std::string& text) {
    Number number{};
    const char* end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, number);
    return error == std::errc{} && at == end ? std::optional(number) : std::nullopt;
}

bool is_of(const std::string& text, const char* more, size_t longest) {
    return !text.empty() && text.size() <= longest &&
           std::all_of(text.begin(), text.end(), [more](unsigned char c) {
               return std::isalnum(c) != 0 || std::string(more).find(char(c)) != std::string::npos;
           });
}

struct Range {
    double low = 0;
    double high = 0;
};

std::optional<Range> range_of(const std::string& text) {
    const size_t dots = text.find("..");
    if (dots == std::string::npos) {
        return std::nullopt;
    }
    const auto low = number_of<double>(text.substr(0, dots));
    const auto high = number_of<double>(text.substr(dots + 2));
    if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high)) {
        return std::nullopt;
    }
    return Range{*low, *high};
}

std::string password_in(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) {
        throw UsageError("--password-file '" + path + "' cannot be read: " + errno_text());
    }
    if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) > longest_password) {
        throw UsageError("--password-file '" + path + "' is not a file with a password in it");
    }
    if ((status.st_mode & 077) != 0) {
        throw UsageError("--password-file '" + path + "' can be read by others: chmod 600 it");
    }
    std::ifstream file(path, std::ios::binary);
    std::string password;
    if (!std::getline(file, password)) {
        throw UsageError("--password-file '" + path + "' is empty or cannot be read");
    }
    return password;
}

std::optional<std::string> find_password(const std::string& file) {
    if (!file.empty()) {
        return password_in(file);
    }
    // Before there is any other thread.
    const char* value = std::getenv(password_variable);  // NOLINT(concurrency-mt-unsafe)
    return value != nullptr ? std::optional<std::string>(value) : std::nullopt;
}

void declare_input(CLI::App& app, Options& options, Typed& typed) {
    app.add_option("--name", options.instance, "Instance to publish (echelle)");
    app.add_option("--feed", options.feed, "Its feed's endpoint, instead of the instance's own");
    app.add_option("--feed-key", options.feed_key_file, "For feeds by tcp: our secret key");
    app.add_option("--feed-server", options.feed_server_file, "The feed's public key");
    app.add_flag("--keep", options.keep, "Wait for the next run when one ends");
    app.add_option("--channels", typed.channels, "Which: 0,3,5-9 (all)");
    app.add_option("--band", typed.bands,
                   "A band whose power is told: NAME=LOW..HIGH in Hz; repeat")
        ->allow_extra_args(false);
    app.add_option("--peaks", options.peaks, "How many peaks are told of each spectrum (0)")
        ->check(CLI::Range(0, 64));
    app.add_option("--spectra", typed.spectra, "Spectra as packets: 1.1, psd16, psd8 (none)");
    app.add_option("--rate", typed.rate, "Messages/s of each channel and topic, or all (10)");
}

void declare_broker(CLI::App& app, Options& options, Typed& typed) {
    BrokerOptions& broker = options.broker;
    app.add_option("--broker", typed.broker,
                   "mqtt://HOST[:1883] or, with TLS, mqtts://HOST[:8883]");
    app.add_option("--ca", broker.ca_file, "Who may vouch for the broker, PEM (the system's list)");
    app.add_option("--cert", broker.certificate_file, "Our certificate, PEM");
    app.add_option("--key", broker.key_file, "Its key, PEM, not encrypted");
    app.add_option("--user", broker.user, "User name");
    app.add_option("--password-file", typed.password_file,
                   std::string("Password, in its first line; or in $") + password_variable);
    app.add_option("--client-id", broker.client_id, "Unique at the broker (made from names)");
    app.add_option("--mqtt", typed.protocol, "Version: 5 or 3.1.1 (5)");
    app.add_option("--keepalive", broker.keepalive_s, "Seconds of silence before it is asked (10)")
        ->check(CLI::Range(5, 65'535));
    app.add_option("--reconnect", typed.reconnect, "Waits between tries, MIN..MAX seconds (1..60)");
    app.add_option("--qos", typed.qos,
                   "0: the latest of each topic; 1: all, while the queue lasts (0)")
        ->check(CLI::Range(0, 1));
    app.add_option("--queue", options.outbox.messages, "Messages kept for the broker (10000)")
        ->check(CLI::Range(1, 100'000'000));
    app.add_option("--queue-bytes", options.outbox.bytes, "And their bytes (67108864)")
        ->check(CLI::Range(uint64_t{1024}, uint64_t{1} << 40));
    app.add_option("--in-flight", broker.window, "Of these, on their way at QoS 1 (100)")
        ->check(CLI::Range(1, 65'535));
    app.add_option("--linger", options.linger_s, "Seconds at the end to deliver what waits (5)")
        ->check(CLI::Range(0.0, 3600.0));
    app.add_option("--topic", options.topic_prefix,
                   "What all topics begin with (echelle/INSTANCE)");
}

void declare(CLI::App& app, Options& options, Typed& typed) {
    app.set_version_flag("--version", std::string("echelle-mqtt ") + ECHELLE_VERSION);
    app.set_config("--config", "", "Read options from a TOML file (names without the dashes)");
    app.allow_config_extras(CLI::config_extras_mode::error);  // a misspelt name must not be ignored
    declare_input(app, options, typed);
    declare_broker(app, options, typed);
    app.add_option("--report", options.report,
                   "Write what was done to this file (JSON), at the end");
    app.add_flag("--quiet", options.quiet, "Warnings and errors only");
}

SpectraForm form_of(const std::string& text) {
    if (text == "none") {
        return SpectraForm::none;
    }
    if (text == "1.1") {
        return SpectraForm::psd;
    }
    if (text == "psd16") {
        return SpectraForm::psd16;
    }
    if (text == "psd8") {
        return SpectraForm::psd8;
    }
    throw UsageError("--spectra '" + text + "' is not known: give 1.1, psd16, psd8 or none");
}

double rate_of(const std::string& text) {
    if (text == "all") {
        return 0;
    }
    const auto rate = number_of<double>(text);
    if (!rate || !(*rate > 0) || *rate > 1e6) {
        throw UsageError("--rate '" + text +
                         "' is not a number of messages/s above 0: give one, or all");
    }
    return *rate;
}

BackoffLimits waits_of(const std::string& text) {
    const auto range = range_of(text);
    if (!range || !(range->low >= 0.01) || range->high < range->low || range->high > 86'400) {
        throw UsageError("--reconnect '" + text +
                         "' is not MIN..MAX in seconds, 0.01 to 86400: give 1..60");
    }
    return {range->low, range->high};
}

void understand_broker(Options& options, const Typed& typed) {
    BrokerOptions& broker = options.broker;
    broker.address = parse_broker(typed.broker);
    broker.backoff = waits_of(typed.reconnect);
    broker.qos = typed.qos == 0 ? Qos::at_most_once : Qos::at_least_once;
    if (typed.protocol != "5" && typed.protocol != "3.1.1") {
        throw UsageError("--mqtt '" + typed.protocol + "' is not known: give 5 or 3.1.1");
    }
    broker.protocol = typed.protocol == "5" ? Protocol::mqtt_5 : Protocol::mqtt_3_1_1;
    const bool has_files = !(broker.ca_file + broker.certificate_file + broker.key_file).empty();
    if (has_files && !broker.address.is_tls) {
        throw UsageError("--ca, --cert and --key are for TLS: give --broker mqtts://" +
                         broker.address.host);
    }
    for (const std::string& file : {broker.ca_file, broker.certificate_file, broker.key_file}) {
        if (!file.empty() && access(file.c_str(), R_OK) != 0) {
            throw UsageError("the file '" + file +
                             "' of --ca, --cert or --key cannot be read: " + errno_text());
        }
    }
    if (broker.certificate_file.empty() != broker.key_file.empty()) {
        throw UsageError("--cert and --key belong together: give both or neither");
    }
    if (!broker.client_id.empty() && !is_of(broker.client_id, "-_.:@", longest_client_id)) {
        throw UsageError("--client-id '" + broker.client_id +
                         "': give 1 to 128 letters, digits, '-', '_', '.', ':', '@'");
    }
    if (!typed.password_file.empty() && broker.user.empty()) {
        throw UsageError("--password-file without --user: say whose password it is");
    }
    if (!broker.user.empty()) {
        broker.password = find_password(typed.password_file);
    }
}

void understand(Options& options, const Typed& typed) {
    understand_broker(options, typed);
    if (typed.channels != "all") {
        options.channels = parse_channels(typed.channels);
    }
    std::set<std::string> names;
    for (const std::string& text : typed.bands) {
        options.bands.push_back(parse_band(text));
        if (!names.insert(options.bands.back().name).second) {
            throw UsageError("--band '" + text + "': there is a band of that name already");
        }
    }
    options.spectra = form_of(typed.spectra);
    options.rate = rate_of(typed.rate);
    const std::string& prefix = options.topic_prefix;
    if (!prefix.empty() && (!is_of(prefix, "-_./", longest_topic_prefix) || prefix.front() == '/' ||
                            prefix.back() == '/' || prefix.find("//") != std::string::npos)) {
        throw UsageError("--topic '" + prefix +
                         "': give names of letters, digits, '-', '_', '.', parted by '/'");
    }
    if (options.feed_key_file.empty() != options.feed_server_file.empty()) {
        throw UsageError("--feed-key and --feed-server belong together: give both or neither");
    }
    const size_t slash = options.report.rfind('/');
    const std::string folder =
        slash == std::string::npos ? "." : options.report.substr(0, slash + 1);
    if (!options.report.empty() && access(folder.c_str(), W_OK) != 0) {
        throw UsageError("--report '" + options.report + "' cannot be written: " + errno_text());
    }
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
}

}  // namespace

Band parse_band(const std::string& text) {
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    const auto range =
        equals == std::string::npos ? std::nullopt : range_of(text.substr(equals + 1));
    if (!range || !is_of(name, "-_.", longest_name)) {
        throw UsageError("--band '" + text + "' is not NAME=LOW..HIGH in Hz: give lows=0..1e6");
    }
    if (!(range->low < range->high)) {
        throw UsageError("--band '" + text + "' is empty: its low end must be below its high end");
    }
    return {name, range->low, range->high};
}

BrokerAddress parse_broker(const std::string& text) {
    BrokerAddress address;
    std::string rest = text;
    if (const size_t scheme = text.find("://"); scheme != std::string::npos) {
        const std::string name = text.substr(0, scheme);
        if (name != "mqtt" && name != "mqtts") {
            throw UsageError("--broker '" + text + "': give mqtt://HOST or mqtts://HOST");
        }
        address.is_tls = name == "mqtts";
        rest = text.substr(scheme + 3);
    }
    if (rest.find('@') != std::string::npos) {
        throw UsageError(
            "--broker: user and password do not belong in it, where others see them: "
            "give --user and --password-file");
    }
    if (!rest.empty() && rest.back() == '/') {
        rest.pop_back();
    }
    std::string port = address.is_tls ? "8883" : "1883";
    if (rest.starts_with('[')) {  // an IPv6 address
        const size_t end = rest.find(']');
        const std::string after = end == std::string::npos ? "?" : rest.substr(end + 1);
        address.host = end == std::string::npos ? "" : rest.substr(1, end - 1);
        if (after.starts_with(':')) {
            port = after.substr(1);
        } else if (!after.empty()) {
            address.host.clear();
        }
    } else {
        const size_t colon = rest.find(':');
        address.host = rest.substr(0, colon);
        if (colon != std::string::npos) {
            port = rest.substr(colon + 1);
        }
    }
    const auto number = number_of<uint16_t>(port);
    if (!is_of(address.host, "-_.:%", 253) || !number || *number == 0) {
        throw UsageError("--broker '" + text + "' is not [mqtt[s]://]HOST[:PORT], port 1 to 65535");
    }
    address.port = *number;
    return address;
}

std::vector<uint32_t> parse_channels(const std::string& text) {
    std::set<uint32_t> channels;
    std::istringstream parts(text);
    std::string part;
    while (std::getline(parts, part, ',')) {
        const size_t dash = part.find('-');
        const auto first = number_of<uint32_t>(part.substr(0, dash));
        const auto last =
            dash == std::string::npos ? first : number_of<uint32_t>(part.substr(dash + 1));
        if (!first || !last || *last < *first || *last >= most_channels) {
            throw UsageError("--channels '" + text + "': '" + part +
                             "' is neither a channel (0 to 65535) nor FIRST-LAST: give 0,3,5-9");
        }
        for (uint32_t channel = *first; channel <= *last; ++channel) {
            channels.insert(channel);
        }
    }
    if (channels.empty()) {
        throw UsageError("--channels '" + text + "' names none: give 0,3,5-9, or all");
    }
    return {channels.begin(), channels.end()};
}

ParsedOptions parse_options(int argc, const char* const* argv) {
    ParsedOptions parsed;
    Typed typed;
    CLI::App app("Publishes what a running echelle-coordinator finds, to an MQTT broker.",
                 "echelle-mqtt");
    declare(app, parsed.options, typed);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        parsed.text = app.help();
        return parsed;
    } catch (const CLI::CallForVersion&) {
        parsed.text = std::string("echelle-mqtt ") + ECHELLE_VERSION + "\n";
        return parsed;
    } catch (const CLI::Error& error) {
        throw UsageError(one_line(error.what()) + " (see --help)");
    }
    understand(parsed.options, typed);
    parsed.run = true;
    return parsed;
}

}  // namespace echelle::mqtt
