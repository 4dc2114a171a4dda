// Who the broker is, who we are to it, and how patiently it is treated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "clients/mqtt/backoff.hpp"

namespace echelle::mqtt {

enum class Protocol { mqtt_5, mqtt_3_1_1 };
enum class Qos { at_most_once = 0, at_least_once = 1 };

struct BrokerAddress {
    std::string host = "localhost";
    uint16_t port = 1883;
    bool is_tls = false;
    std::string text() const;  // mqtt://HOST:PORT or mqtts://HOST:PORT
};

struct BrokerOptions {
    BrokerAddress address;
    std::string ca_file;  // who may vouch for the broker; empty: the system's list
    std::string certificate_file;
    std::string key_file;
    std::string user;
    std::optional<std::string> password;
    std::string client_id;
    Protocol protocol = Protocol::mqtt_5;
    Qos qos = Qos::at_most_once;  // of what is published
    uint32_t window = 100;        // messages in flight at QoS 1, at most
    int keepalive_s = 10;         // 5 at least, says libmosquitto
    BackoffLimits backoff;
    uint64_t seed = 0;     // of what is drawn by chance
    double connect_s = 5;  // from the first step to the broker's consent
    double stable_s = 10;  // a connection that held so long resets the waits
};

}  // namespace echelle::mqtt
