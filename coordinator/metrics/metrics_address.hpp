// --metrics [ADDRESS:]PORT: where a Prometheus server finds this run's figures.
#pragma once

#include <cstdint>
#include <string>

namespace echelle {

struct MetricsAddress {
    std::string host = "127.0.0.1";  // a numeric IPv4 or IPv6 address, without brackets
    uint16_t port = 0;               // 0: a free one; the report says which

    // "9760", "0.0.0.0:9760", "[::1]:9760". Throws UsageError.
    static MetricsAddress parse(const std::string& text);
    bool is_ipv6() const { return host.find(':') != std::string::npos; }
    std::string text() const;  // as in a URL
};

// Throws UsageError when nobody can listen there: the port is taken, the address is not this
// machine's, or the system forbids it.
void check_can_listen(const MetricsAddress& address);
// Connects and leaves: wakes whoever waits for connections there.
void knock(const MetricsAddress& address);

}  // namespace echelle
