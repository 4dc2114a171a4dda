#include "common/feed_endpoint.hpp"

#include <charconv>
#include <cstring>
#include <string_view>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "common/error.hpp"
#include "common/file_descriptor.hpp"

namespace echelle {
namespace {

constexpr std::string_view ipc = "ipc://";
constexpr std::string_view tcp = "tcp://";

bool somebody_listens(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const FileDescriptor probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    return connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

void check_path(const std::string& option, const std::string& endpoint, const std::string& path) {
    if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path)) {
        throw UsageError(option + " '" + endpoint +
                         "' is not possible: a socket's path has 1 to 107 characters");
    }
    struct stat status {};
    if (path.front() == '@' || lstat(path.c_str(), &status) != 0) {
        return;  // an abstract name, or nothing there yet
    }
    if (!S_ISSOCK(status.st_mode)) {
        throw UsageError(option + " '" + endpoint +
                         "' is not possible: something other than a socket stands there; give "
                         "another path");
    }
    if (somebody_listens(path)) {
        throw UsageError(option + " '" + endpoint +
                         "' is not possible: another program listens there; give another path");
    }
}

void check_address(const std::string& option, const std::string& endpoint,
                   std::string_view address) {
    const size_t colon = address.rfind(':');
    const std::string_view port =
        colon == std::string_view::npos ? std::string_view() : address.substr(colon + 1);
    uint16_t number = 0;
    const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (colon == 0 || error != std::errc{} || stop != port.data() + port.size() || number == 0) {
        throw UsageError(option + " '" + endpoint +
                         "' is not possible: give tcp://ADDRESS:PORT with a port from 1 to 65535");
    }
}

}  // namespace

bool is_tcp(const std::string& endpoint) {
    return endpoint.starts_with(tcp);
}

bool leaves_machine(const std::string& endpoint) {
    if (!is_tcp(endpoint)) {
        return false;
    }
    const std::string_view address = std::string_view(endpoint).substr(tcp.size());
    const std::string_view host = address.substr(0, address.rfind(':'));
    return host != "localhost" && host != "[::1]" && host != "lo" && !host.starts_with("127.");
}

void check_feed_endpoint(const std::string& option, const std::string& endpoint) {
    if (endpoint.starts_with(ipc)) {
        check_path(option, endpoint, endpoint.substr(ipc.size()));
    } else if (is_tcp(endpoint)) {
        check_address(option, endpoint, std::string_view(endpoint).substr(tcp.size()));
    } else {
        throw UsageError(option + " '" + endpoint +
                         "' is not possible: give ipc:///PATH or tcp://ADDRESS:PORT");
    }
}

void check_feed_access(const std::string& option, const FeedAccess& access) {
    for (const std::string& endpoint : access.endpoints) {
        check_feed_endpoint(option, endpoint);
        if (leaves_machine(endpoint) && access.key.empty() && !access.insecure) {
            throw UsageError(option + " '" + endpoint +
                             "' leaves this machine without keys: give " + option + "-key and " +
                             option + "-allow (echellectl keys), an address of 127.0.0.1, or " +
                             option + "-insecure to let whoever reaches the port read");
        }
    }
    if (access.key.empty() != access.allow.empty()) {
        throw UsageError(option + "-key and " + option +
                         "-allow go together: the feed's own keys, and the list of those who may "
                         "subscribe");
    }
}

}  // namespace echelle
