#include "echelle/ring.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace echelle::client {
namespace {

constexpr char magic[8] = {'E', 'C', 'H', 'S', 'P', 'E', 'C', '\0'};
constexpr size_t header_bytes = 256;
constexpr size_t slot_header_bytes = 32;
constexpr size_t head_at = 128;
constexpr size_t state_at = 136;
constexpr uint32_t state_ended = 2;
constexpr timeval patience{2, 0};

template <typename Value>
Value load(const std::byte* at) {
    Value value{};
    std::memcpy(&value, at, sizeof value);
    return value;
}

// An aligned word of memory that another process writes.
template <typename Value>
Value load_acquire(const std::byte* at) {
    return __atomic_load_n(reinterpret_cast<const Value*>(at), __ATOMIC_ACQUIRE);
}

std::string why() {
    return std::strerror(errno);  // NOLINT(concurrency-mt-unsafe)
}

std::string ring_socket_of(const std::string& target) {
    const std::string endpoint = feed_endpoint(target);
    constexpr std::string_view scheme = "ipc://";
    constexpr std::string_view name = "/feed";
    if (!endpoint.starts_with(scheme) || !endpoint.ends_with(name)) {
        throw FeedError("the ring of " + endpoint +
                        " is not on this machine: name an instance, or ipc://…/feed");
    }
    return endpoint.substr(scheme.size(), endpoint.size() - scheme.size() - name.size()) +
           "/spectra";
}

SubscribeOptions notices_only() {
    SubscribeOptions options;
    options.channels = std::vector<uint32_t>{};
    options.queue = 16;
    options.topics = {"ring/"};
    return options;
}

class Descriptor {
  public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    int number() const { return number_; }

  private:
    int number_;
};

// The descriptor in the door's answer, or -1, and the region's size that it states.
int receive_descriptor(int door, uint64_t& region_bytes) {
    std::array<char, 16> content{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{content.data(), content.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    ssize_t received = 0;
    do {
        received = recvmsg(door, &message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (received < 0 && errno == EINTR);
    int descriptor = -1;
    const cmsghdr* attached = CMSG_FIRSTHDR(&message);
    if (attached != nullptr && attached->cmsg_type == SCM_RIGHTS &&
        attached->cmsg_len == CMSG_LEN(sizeof(int))) {
        std::memcpy(&descriptor, CMSG_DATA(attached), sizeof descriptor);
    }
    if (received == static_cast<ssize_t>(content.size()) &&
        std::memcmp(content.data(), magic, sizeof magic) == 0) {
        std::memcpy(&region_bytes, content.data() + sizeof magic, sizeof region_bytes);
    }
    return descriptor;
}

}  // namespace

SpectrumRing::SpectrumRing(const std::string& target) : feed_(target, notices_only()) {
    map(ring_socket_of(target));
    try {
        check();
    } catch (...) {
        munmap(const_cast<std::byte*>(data_), size_);
        throw;
    }
    position_ = head();
}

SpectrumRing::~SpectrumRing() {
    munmap(const_cast<std::byte*>(data_), size_);
}

void SpectrumRing::map(const std::string& socket_path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (socket_path.size() >= sizeof address.sun_path) {
        throw FeedError("the path " + socket_path + " is too long for a socket");
    }
    std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
    const Descriptor door(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(door.number(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(door.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
        throw FeedError("cannot reach the ring of spectra at " + socket_path + ": " + why());
    }
    uint64_t bytes = 0;
    const Descriptor region(receive_descriptor(door.number(), bytes));
    struct stat status {};
    if (region.number() < 0 || bytes < header_bytes || fstat(region.number(), &status) != 0 ||
        static_cast<uint64_t>(status.st_size) < bytes) {
        throw FeedError("the coordinator at " + socket_path +
                        " has no ring of spectra; use a Subscriber");
    }
    void* mapped = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, region.number(), 0);
    if (mapped == MAP_FAILED) {
        throw FeedError("cannot map the ring of spectra: " + why());
    }
    data_ = static_cast<const std::byte*>(mapped);
    size_ = bytes;
}

void SpectrumRing::check() {
    if (std::memcmp(data_, magic, sizeof magic) != 0 || load<uint32_t>(data_ + 8) >> 16 != 1) {
        throw FeedError("this is not a ring of spectra of version 1");
    }
    slots_offset_ = load<uint32_t>(data_ + 12);
    slot_count_ = load<uint64_t>(data_ + 16);
    slot_stride_ = load<uint64_t>(data_ + 24);
    packet_offset_ = load<uint32_t>(data_ + 40);
    packet_bytes_most_ = load<uint32_t>(data_ + 44);
    if (slots_offset_ < header_bytes || slots_offset_ > size_ || slot_count_ == 0 ||
        slot_stride_ % 64 != 0 || packet_offset_ < slot_header_bytes ||
        packet_offset_ + packet_bytes_most_ > slot_stride_ ||
        slot_count_ > (size_ - slots_offset_) / slot_stride_) {
        throw FeedError("the ring's slots do not fit into its region");
    }
}

uint64_t SpectrumRing::head() const {
    return load_acquire<uint64_t>(data_ + head_at);
}

uint32_t SpectrumRing::channels() const {
    return load<uint32_t>(data_ + 48);
}

const std::byte* SpectrumRing::slot(uint64_t position) const {
    return data_ + slots_offset_ + position % slot_count_ * slot_stride_;
}

std::optional<RingEntry> SpectrumRing::next() {
    while (position_ < head()) {
        const std::byte* at = slot(position_);
        const auto sequence = load_acquire<uint64_t>(at);
        const auto bytes = load<uint32_t>(at + 28);
        if (sequence == 2 * position_ + 2 && bytes <= packet_bytes_most_) {
            return RingEntry{position_++,
                             load<uint64_t>(at + 8),
                             load<int64_t>(at + 16),
                             load<uint32_t>(at + 24),
                             {at + packet_offset_, bytes}};
        }
        // Gone: a quarter of the ring is room to come abreast.
        const uint64_t written = head();
        const uint64_t oldest = written > slot_count_ ? written - slot_count_ : 0;
        const uint64_t go_on_at = std::max(oldest + slot_count_ / 4, position_ + 1);
        missed_ += go_on_at - position_;
        position_ = go_on_at;
    }
    return std::nullopt;
}

bool SpectrumRing::confirm(const RingEntry& entry) {
    std::atomic_thread_fence(std::memory_order_acquire);
    const bool holds = load_acquire<uint64_t>(slot(entry.position)) == 2 * entry.position + 2;
    missed_ += holds ? 0 : 1;
    return holds;
}

bool SpectrumRing::wait(std::chrono::milliseconds timeout) {
    try {
        feed_.receive(timeout);
        for (;;) {
            feed_.receive(std::chrono::milliseconds(0));
        }
    } catch (const FeedTimeout&) {
        return position_ < head();
    } catch (const FeedEnded&) {
        return position_ < head();  // it may have been killed: what it wrote is still there
    }
}

bool SpectrumRing::ended() const {
    const bool no_more = load_acquire<uint32_t>(data_ + state_at) == state_ended || feed_.ended();
    return no_more && position_ >= head();
}

}  // namespace echelle::client
