// The command line of echelle-mqtt. docs/mqtt.md describes each option.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "clients/mqtt/broker_options.hpp"
#include "clients/mqtt/outbox.hpp"
#include "clients/mqtt/spectrum_figures.hpp"

namespace echelle::mqtt {

enum class SpectraForm { none, psd, psd16, psd8 };

struct Options {
    std::string instance = "echelle";
    std::string feed;  // endpoint; empty: the instance's
    std::string feed_key_file;
    std::string feed_server_file;
    bool keep = false;  // wait for the next run when one ends

    BrokerOptions broker;
    OutboxLimits outbox;
    double linger_s = 5;

    std::string topic_prefix;  // empty: echelle/INSTANCE
    std::optional<std::vector<uint32_t>> channels;
    std::vector<Band> bands;
    uint32_t peaks = 0;
    SpectraForm spectra = SpectraForm::none;
    double rate = 10;  // messages of a topic and channel per second; 0: all

    std::string report;
    bool quiet = false;
};

struct ParsedOptions {
    bool run = false;  // else print the text and end
    std::string text;
    Options options;
};

// Throws UsageError. Reads the password's file and environment, and draws nothing by chance.
ParsedOptions parse_options(int argc, const char* const* argv);

// "NAME=LOW..HIGH", in Hz. Throws UsageError.
Band parse_band(const std::string& text);
// "[mqtt[s]://]HOST[:PORT]". Throws UsageError.
BrokerAddress parse_broker(const std::string& text);
// "0,3,5-9", in order and each once. Throws UsageError.
std::vector<uint32_t> parse_channels(const std::string& text);

}  // namespace echelle::mqtt
