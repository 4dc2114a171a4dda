#include "common/spectrum_ring_door.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

constexpr int most_waiting = 64;   // connections that wait to be accepted
constexpr int most_at_once = 16;   // then the caller has other things to do
constexpr timeval patience{2, 0};  // of a reader, for the coordinator's answer

// What goes over the socket beside the descriptor; little-endian.
struct Answer {
    std::array<char, sizeof spectrum_ring_magic> magic{};
    uint64_t region_bytes = 0;  // 0: there is no ring
};
static_assert(sizeof(Answer) == 16);

sockaddr_un address_of(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) {
        throw UsageError("the socket's path " + path +
                         " is too long (107 characters): give a shorter --name or XDG_RUNTIME_DIR");
    }
    std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
    return address;
}

const sockaddr* as_sockaddr(const sockaddr_un& address) {
    return reinterpret_cast<const sockaddr*>(&address);
}

// One message and, perhaps, one descriptor. Their storage must outlive the msghdr.
struct Envelope {
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec content{};
    msghdr message{};

    explicit Envelope(Answer& answer) : content{&answer, sizeof answer} {
        message.msg_iov = &content;
        message.msg_iovlen = 1;
    }
    void make_room_for_descriptor() {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
    }
};

void give(int connection, const SpectrumRingWriter* ring) {
    Answer answer;
    std::memcpy(answer.magic.data(), spectrum_ring_magic, answer.magic.size());
    Envelope envelope(answer);
    FileDescriptor descriptor;
    if (ring != nullptr && (descriptor = ring->read_only_descriptor())) {
        answer.region_bytes = ring->region().size();
        envelope.make_room_for_descriptor();
        cmsghdr* attached = CMSG_FIRSTHDR(&envelope.message);
        attached->cmsg_level = SOL_SOCKET;
        attached->cmsg_type = SCM_RIGHTS;
        attached->cmsg_len = CMSG_LEN(sizeof(int));
        const int number = descriptor.get();
        std::memcpy(CMSG_DATA(attached), &number, sizeof number);
    }
    // 16 bytes find room in any new socket. A reader that has gone away needs no answer.
    static_cast<void>(sendmsg(connection, &envelope.message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

// The descriptor that came with the message, if any.
FileDescriptor descriptor_in(msghdr& message) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level == SOL_SOCKET && part->cmsg_type == SCM_RIGHTS &&
            part->cmsg_len == CMSG_LEN(sizeof(int))) {
            int number = -1;
            std::memcpy(&number, CMSG_DATA(part), sizeof number);
            return FileDescriptor(number);
        }
    }
    return {};
}

}  // namespace

SpectrumRingDoor::SpectrumRingDoor(const std::string& path) {
    const sockaddr_un address = address_of(path);
    listener_ = FileDescriptor(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    unlink(path.c_str());
    if (!listener_ || bind(listener_.get(), as_sockaddr(address), sizeof address) != 0 ||
        listen(listener_.get(), most_waiting) != 0) {
        throw UsageError("cannot listen on " + path + ": " + errno_text() +
                         "; give another --name, or free the directory");
    }
}

void SpectrumRingDoor::serve(const std::function<const SpectrumRingWriter*()>& ring) {
    for (int i = 0; i < most_at_once; ++i) {
        const FileDescriptor connection(
            accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!connection) {
            return;  // nobody, or no descriptor left: they try again
        }
        give(connection.get(), ring());
    }
}

AttachedSpectrumRing::AttachedSpectrumRing(const std::string& socket_path) {
    const sockaddr_un address = address_of(socket_path);
    const FileDescriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    setsockopt(connection.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (!connection || connect(connection.get(), as_sockaddr(address), sizeof address) != 0) {
        throw UsageError("cannot reach the ring of spectra at " + socket_path + ": " +
                         errno_text() + "; is its coordinator running?");
    }
    Answer answer;
    Envelope envelope(answer);
    envelope.make_room_for_descriptor();
    ssize_t received = 0;
    do {
        received = recvmsg(connection.get(), &envelope.message, MSG_CMSG_CLOEXEC | MSG_WAITALL);
    } while (received < 0 && errno == EINTR);
    const FileDescriptor descriptor = descriptor_in(envelope.message);
    if (received != static_cast<ssize_t>(sizeof answer) ||
        std::memcmp(answer.magic.data(), spectrum_ring_magic, answer.magic.size()) != 0) {
        throw UsageError(socket_path +
                         " gives no ring of spectra: it is not a coordinator's, or "
                         "did not answer in time");
    }
    if (!descriptor) {
        throw UsageError("the coordinator at " + socket_path +
                         " has no ring of spectra: it has no memory for one; subscribe to psd/");
    }
    struct stat status {};
    if (fstat(descriptor.get(), &status) != 0 || status.st_size <= 0 ||
        static_cast<uint64_t>(status.st_size) < answer.region_bytes) {
        throw UsageError("the ring of spectra from " + socket_path + " is smaller than said");
    }
    void* mapped = mmap(nullptr, answer.region_bytes, PROT_READ, MAP_SHARED, descriptor.get(), 0);
    if (mapped == MAP_FAILED) {
        throw UsageError("cannot map the ring of spectra (" + std::to_string(answer.region_bytes) +
                         " bytes): " + errno_text());
    }
    data_ = static_cast<const std::byte*>(mapped);
    size_ = answer.region_bytes;
}

AttachedSpectrumRing::AttachedSpectrumRing(AttachedSpectrumRing&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

AttachedSpectrumRing& AttachedSpectrumRing::operator=(AttachedSpectrumRing&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}

AttachedSpectrumRing::~AttachedSpectrumRing() {
    if (data_ != nullptr) {
        munmap(const_cast<std::byte*>(data_), size_);
    }
}

}  // namespace echelle
