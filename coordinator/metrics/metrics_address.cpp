#include "coordinator/metrics/metrics_address.hpp"

#include <charconv>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "common/error.hpp"
#include "common/file_descriptor.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse_address(const std::string& text) {
    throw UsageError("--metrics '" + text +
                     "' is not possible: give [ADDRESS:]PORT with a numeric address of this "
                     "machine and a port from 0 to 65535, as 9760, 0.0.0.0:9760 or [::1]:9760");
}

// bind() or connect(), with the address in the form that they take.
int apply(int (*call)(int, const sockaddr*, socklen_t), int fd, const MetricsAddress& address) {
    if (address.is_ipv6()) {
        sockaddr_in6 made{};
        made.sin6_family = AF_INET6;
        made.sin6_port = htons(address.port);
        inet_pton(AF_INET6, address.host.c_str(), &made.sin6_addr);
        return call(fd, reinterpret_cast<const sockaddr*>(&made), sizeof made);
    }
    sockaddr_in made{};
    made.sin_family = AF_INET;
    made.sin_port = htons(address.port);
    inet_pton(AF_INET, address.host.c_str(), &made.sin_addr);
    return call(fd, reinterpret_cast<const sockaddr*>(&made), sizeof made);
}

FileDescriptor open_socket(const MetricsAddress& address) {
    return FileDescriptor(socket(address.is_ipv6() ? AF_INET6 : AF_INET,
                                 SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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
        refuse_address(text);
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
        refuse_address(text);
    }
    address.host = host;
    return address;
}

std::string MetricsAddress::text() const {
    return (is_ipv6() ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

void check_can_listen(const MetricsAddress& address) {
    const FileDescriptor probe = open_socket(address);
    const int on = 1;
    int outcome = probe ? setsockopt(probe.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) : -1;
    if (outcome == 0) {
        outcome = apply(bind, probe.get(), address);
    }
    // Two may be bound with SO_REUSEADDR as long as neither listens.
    if (outcome != 0 || listen(probe.get(), 1) != 0) {
        const int error = errno;
        throw UsageError("cannot serve --metrics at " + address.text() + ": " + errno_text(error) +
                         "; " + remedy_for(error));
    }
}

void knock(const MetricsAddress& address) {
    const FileDescriptor visitor = open_socket(address);
    // Begun is enough; whoever listens sees it at once.
    static_cast<void>(apply(connect, visitor.get(), address));
}

}  // namespace echelle
