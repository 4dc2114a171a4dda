#include "coordinator/sources/udp_socket.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>

#include <arpa/inet.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <poll.h>

#include "common/error.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse(const std::string& what) {
    throw UsageError(what + ": " + errno_text());
}

template <typename Value>
bool set_option(int fd, int level, int name, const Value& value) {
    return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

uint16_t parse_port(const std::string& text, const std::string& uri) {
    uint16_t port = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, port);
    if (error != std::errc() || stop != end || port == 0) {
        throw UsageError("source '" + uri + "' has the port '" + text + "': give 1 to 65535");
    }
    return port;
}

unsigned interface_index(const std::string& name) {
    if (name.empty()) {
        return 0;
    }
    const unsigned index = if_nametoindex(name.c_str());
    if (index == 0) {
        refuse("there is no network interface '" + name + "' (see ip link)");
    }
    return index;
}

void join(int fd, const UdpSocketOptions& options) {
    const unsigned index = interface_index(options.interface);
    bool joined = false;
    if (options.address.is_v6()) {
        ipv6_mreq request{};
        request.ipv6mr_multiaddr =
            reinterpret_cast<const sockaddr_in6&>(options.address.storage).sin6_addr;
        request.ipv6mr_interface = index;
        joined = set_option(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, request);
    } else {
        ip_mreqn request{};
        request.imr_multiaddr =
            reinterpret_cast<const sockaddr_in&>(options.address.storage).sin_addr;
        request.imr_ifindex = static_cast<int>(index);
        joined = set_option(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, request);
        // Else a socket hears every group that any program here has joined on this port.
        set_option(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
    }
    if (!joined) {
        refuse("cannot join the multicast group" +
               (options.interface.empty() ? std::string() : " on " + options.interface) +
               "; name the interface with interface=");
    }
}

uint64_t make_room(int fd, uint64_t wanted) {
    const int bytes = static_cast<int>(std::min<uint64_t>(wanted, uint64_t{1} << 30));
    // The first passes net.core.rmem_max, with CAP_NET_ADMIN.
    if (!set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes)) {
        set_option(fd, SOL_SOCKET, SO_RCVBUF, bytes);
    }
    int given = 0;
    socklen_t size = sizeof given;
    getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &given, &size);
    return static_cast<uint64_t>(given) / 2;  // the kernel tells twice what it was asked for
}

}  // namespace

UdpAddress UdpAddress::parse(const std::string& text, const std::string& uri) {
    const size_t colon = text.rfind(':');
    std::string host = text.substr(0, colon);
    const bool is_bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
    UdpAddress parsed;
    if (colon != std::string::npos) {
        const uint16_t port = htons(parse_port(text.substr(colon + 1), uri));
        auto& v4 = reinterpret_cast<sockaddr_in&>(parsed.storage);
        auto& v6 = reinterpret_cast<sockaddr_in6&>(parsed.storage);
        if (!is_bracketed && inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
            v4.sin_family = AF_INET;
            v4.sin_port = port;
            parsed.bytes = sizeof v4;
            return parsed;
        }
        host = is_bracketed ? host.substr(1, host.size() - 2) : host;
        if (is_bracketed && inet_pton(AF_INET6, host.c_str(), &v6.sin6_addr) == 1) {
            v6.sin6_family = AF_INET6;
            v6.sin6_port = port;
            parsed.bytes = sizeof v6;
            return parsed;
        }
    }
    throw UsageError("source '" + uri + "' has the address '" + text +
                     "': give an address in numbers and a port, like 0.0.0.0:4991, "
                     "239.1.2.3:4991 or [::]:4991");
}

bool UdpAddress::is_multicast() const {
    if (is_v6()) {
        const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
        return IN6_IS_ADDR_MULTICAST(&v6.sin6_addr);
    }
    return IN_MULTICAST(ntohl(reinterpret_cast<const sockaddr_in&>(storage).sin_addr.s_addr));
}

UdpSocket::UdpSocket(const UdpSocketOptions& options)
    : fd_(socket(options.address.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    if (!fd_) {
        refuse("cannot make a UDP socket");
    }
    if (options.address.is_multicast()) {
        // Several programs may listen to one group.
        set_option(fd_.get(), SOL_SOCKET, SO_REUSEADDR, 1);
    }
    // Before bind(): what comes in right after it must already be counted and have room.
    set_option(fd_.get(), SOL_SOCKET, SO_RXQ_OVFL, 1);
    buffer_bytes_ = make_room(fd_.get(), options.buffer_bytes);
    if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&options.address.storage),
             options.address.bytes) != 0) {
        refuse(
            "cannot receive at this address and port; is it one of this machine's, and is "
            "another program using it?");
    }
    if (options.address.is_multicast()) {
        join(fd_.get(), options);
    }
    for (size_t i = 0; i < batch; ++i) {
        messages_[i].msg_hdr.msg_iov = &vectors_[i];
        messages_[i].msg_hdr.msg_iovlen = 1;
    }
}

size_t UdpSocket::receive(std::span<Received> into, int timeout_ms) {
    pollfd event{fd_.get(), POLLIN, 0};
    const size_t count = std::min(into.size(), batch);
    for (size_t i = 0; i < count; ++i) {
        vectors_[i] = {into[i].buffer.data(), into[i].buffer.size()};
        msghdr& header = messages_[i].msg_hdr;
        header.msg_control = controls_[i].bytes.data();
        header.msg_controllen = controls_[i].bytes.size();
        header.msg_flags = 0;
    }
    for (int attempt = 0;; ++attempt) {
        const int got =
            recvmmsg(fd_.get(), messages_.data(), static_cast<unsigned>(count), 0, nullptr);
        if (got > 0) {
            for (int i = 0; i < got; ++i) {
                into[static_cast<size_t>(i)].size = messages_[static_cast<size_t>(i)].msg_len;
            }
            read_overflow(messages_[static_cast<size_t>(got) - 1].msg_hdr);
            return static_cast<size_t>(got);
        }
        if (errno == EINTR) {
            return 0;
        }
        if (errno != EAGAIN && errno != EWOULDBLOCK) {
            throw RunError("receiving failed: " + errno_text());
        }
        if (attempt > 0 || poll(&event, 1, timeout_ms) <= 0) {
            return 0;
        }
    }
}

void UdpSocket::read_overflow(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SO_RXQ_OVFL) {
            uint32_t count = 0;
            std::memcpy(&count, CMSG_DATA(part), sizeof count);
            note_overflow(count);
        }
    }
}

void UdpSocket::note_overflow(uint32_t count) {
    overflow_ += count - last_count_;  // modulo 2^32
    last_count_ = count;
}

void UdpSocket::ask_overflow() {
    std::array<uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t bytes = sizeof memory;
    if (getsockopt(fd_.get(), SOL_SOCKET, SO_MEMINFO, memory.data(), &bytes) == 0 &&
        bytes == sizeof memory) {
        note_overflow(memory[SK_MEMINFO_DROPS]);
    }
}

}  // namespace echelle
