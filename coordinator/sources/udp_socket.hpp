// A UDP socket that receives many datagrams with one call, and knows how many the kernel dropped
// because it was not read in time. Owned and used by one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/file_descriptor.hpp"

namespace echelle {

// An address to receive at: "0.0.0.0:4991", "239.1.2.3:4991", "[::]:4991", "[ff02::1]:4991".
struct UdpAddress {
    sockaddr_storage storage{};
    socklen_t bytes = 0;

    // Numbers only: names would have to be looked up. Throws UsageError naming `uri`.
    static UdpAddress parse(const std::string& text, const std::string& uri);
    bool is_v6() const { return storage.ss_family == AF_INET6; }
    bool is_multicast() const;
};

struct UdpSocketOptions {
    UdpAddress address;
    std::string interface;  // by name, for multicast; empty: the kernel's choice
    uint64_t buffer_bytes = uint64_t{64} << 20;
};

class UdpSocket {
  public:
    static constexpr size_t batch = 64;

    // Binds, joins the group where the address is one, and makes the receive buffer as large as is
    // wanted (SO_RCVBUFFORCE) or allowed (SO_RCVBUF). Throws UsageError.
    explicit UdpSocket(const UdpSocketOptions& options);

    // Where datagrams go and how long each was; `size` is 0 for an empty one.
    struct Received {
        std::span<std::byte> buffer;
        size_t size = 0;
    };
    // Waits up to `timeout_ms` for the first datagram and takes those that are there, at most
    // `batch`. Returns how many, 0 after the timeout or a signal. Throws RunError.
    size_t receive(std::span<Received> into, int timeout_ms);

    // Datagrams that the kernel dropped for want of room in the receive buffer. The count rides on
    // the datagram after the loss; ask_overflow() looks it up where there may be none.
    uint64_t overflow() const { return overflow_; }
    void ask_overflow();
    uint64_t buffer_bytes() const { return buffer_bytes_; }

  private:
    void note_overflow(uint32_t count);
    void read_overflow(msghdr& message);

    FileDescriptor fd_;
    uint64_t buffer_bytes_ = 0;
    uint32_t last_count_ = 0;  // the kernel's, which wraps round
    uint64_t overflow_ = 0;
    struct Control {
        alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(uint32_t))> bytes;
    };
    std::array<mmsghdr, batch> messages_{};
    std::array<iovec, batch> vectors_{};
    std::array<Control, batch> controls_{};
};

}  // namespace echelle
