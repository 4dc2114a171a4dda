#include "coordinator/metrics/metrics_address.hpp"

#include <charconv>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/error.hpp"
#include "common/file_descriptor.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse(const std::string& text) {
    throw UsageError("--metrics '" + text +
                     "' is not possible: give [ADDRESS:]PORT with a numeric address of this "
                     "machine and a port from 0 to 65535, as 9760, 0.0.0.0:9760 or [::1]:9760");
}

sockaddr_in6 socket_address_6(const MetricsAddress& address) {
    sockaddr_in6 made{};
    made.sin6_family = AF_INET6;
    made.sin6_port = htons(address.port);
    inet_pton(AF_INET6, address.host.c_str(), &made.sin6_addr);
    return made;
}

sockaddr_in socket_address_4(const MetricsAddress& address) {
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &made.sin_addr);
    return made;
}

template <typename SocketAddress>
int bind_to(int fd, const SocketAddress& address) {
    return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

const char* remedy_for(int error) {
    switch (error) {
        case EADDRINUSE:
            return "give another port, or 0 for a free one";
        case EADDRNOTAVAIL:
            return "give an address that this machine has (ip address)";
        case EACCES:
            return "give a port above 1023";
        default:
            return "give another address";
    }
}

}  // namespace

MetricsAddress MetricsAddress::parse(const std::string& text) {
    MetricsAddress address;
    const size_t colon = text.rfind(':');
    const std::string port = colon == std::string::npos ? text : text.substr(colon + 1);
    const char* end = port.data() + port.size();
    const auto [stop, error] = std::from_chars(port.data(), end, address.port);
    if (error != std::errc{} || stop != end) {
        refuse(text);
    }
    if (colon == std::string::npos) {
        return address;
    }
    std::string host = text.substr(0, colon);
    const bool has_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
    if (has_brackets) {
        host = host.substr(1, host.size() - 2);
    }
    in6_addr numeric{};
    if (inet_pton(has_brackets ? AF_INET6 : AF_INET, host.c_str(), &numeric) != 1) {
        refuse(text);
    }
    address.host = host;
    return address;
}

std::string MetricsAddress::text(uint16_t actual_port) const {
    return (is_ipv6() ? "[" + host + "]" : host) + ":" + std::to_string(actual_port);
}

void check_can_listen(const MetricsAddress& address) {
    const FileDescriptor probe(
        socket(address.is_ipv6() ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    int outcome = probe ? setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) : -1;
    if (outcome == 0) {
        outcome = address.is_ipv6() ? bind_to(probe.get(), socket_address_6(address))
                                    : bind_to(probe.get(), socket_address_4(address));
    }
    // Two may be bound with SO_REUSEADDR as long as neither listens.
    if (outcome != 0 || listen(probe.get(), 1) != 0) {
        const int error = errno;
        throw UsageError("cannot serve --metrics at " + address.text() + ": " + errno_text(error) +
                         "; " + remedy_for(error));
    }
}

}  // namespace echelle
