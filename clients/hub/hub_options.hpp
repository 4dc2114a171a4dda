// echelle-hub's command line: docs/hub.md. Plain values; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/feed_endpoint.hpp"

namespace echelle {

enum class Decimation { latest, average };
inline const char* name_of(Decimation decimation) {
    return decimation == Decimation::latest ? "latest" : "average";
}

struct HubOptions {
    std::string from = "echelle";          // as typed: an instance's name, or an endpoint
    std::string from_endpoint;             // what that means
    std::string from_server;               // path of the upstream feed's public key, or empty
    std::string from_key;                  // path of the hub's own keys, or empty
    FeedAccess to;                         // besides the endpoint in the hub's own directory
    std::string name = "hub";              // of the hub's own instance
    std::vector<std::string> topics = {};  // prefixes
    double rate_hz = 0;                    // spectra/s of each topic at most; 0: all
    Decimation decimation = Decimation::latest;
    int queue_messages = 1000;  // from upstream, and to each subscriber
    std::string report;         // path, or empty
    bool until_end = false;     // ends with the upstream's run
    bool quiet = false;
};

struct ParsedHubOptions {
    bool run = true;
    std::string text;  // --help or --version
    HubOptions options;
};

// Throws UsageError.
ParsedHubOptions parse_hub_options(int argc, char** argv);

}  // namespace echelle
