#include "clients/record/file_consistency.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle::record {
namespace {

constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
constexpr size_t version_at = 8;
constexpr size_t address_bytes_at = 9;
constexpr size_t flags_at = 11;
constexpr size_t end_of_file_at = 28;
constexpr size_t checksum_at = 44;

template <typename Number>
Number load(std::span<const std::byte> bytes, size_t at) {
    Number number = 0;
    for (size_t i = sizeof number; i-- > 0;) {
        number = static_cast<Number>(number << 8 | std::to_integer<Number>(bytes[at + i]));
    }
    return number;
}

template <typename Number>
void store(std::span<std::byte> bytes, size_t at, Number number) {
    for (size_t i = 0; i < sizeof number; ++i) {
        bytes[at + i] = static_cast<std::byte>(number >> 8 * i & 0xFF);
    }
}

}  // namespace

uint32_t lookup3(std::span<const std::byte> bytes) {
    using std::rotl;
    const auto start = 0xDEADBEEF + static_cast<uint32_t>(bytes.size());
    uint32_t a = start;
    uint32_t b = start;
    uint32_t c = start;
    size_t at = 0;
    for (; bytes.size() - at > 12; at += 12) {
        a += load<uint32_t>(bytes, at);
        b += load<uint32_t>(bytes, at + 4);
        c += load<uint32_t>(bytes, at + 8);
        a = (a - c) ^ rotl(c, 4);
        c += b;
        b = (b - a) ^ rotl(a, 6);
        a += c;
        c = (c - b) ^ rotl(b, 8);
        b += a;
        a = (a - c) ^ rotl(c, 16);
        c += b;
        b = (b - a) ^ rotl(a, 19);
        a += c;
        c = (c - b) ^ rotl(b, 4);
        b += a;
    }
    if (at == bytes.size()) {
        return c;  // of nothing
    }
    a += load<uint32_t>(bytes, at);
    b += at + 4 < bytes.size() ? load<uint32_t>(bytes, at + 4) : 0;
    c += at + 8 < bytes.size() ? load<uint32_t>(bytes, at + 8) : 0;
    c = (c ^ b) - rotl(b, 14);
    a = (a ^ c) - rotl(c, 11);
    b = (b ^ a) - rotl(a, 25);
    c = (c ^ b) - rotl(b, 16);
    a = (a ^ c) - rotl(c, 4);
    b = (b ^ a) - rotl(a, 14);
    return (c ^ b) - rotl(b, 24);
}

Consistency clear_open_mark(Superblock& superblock, uint64_t file_bytes) {
    const std::span<std::byte> bytes(superblock);
    if (std::memcmp(superblock.data(), signature.data(), signature.size()) != 0 ||
        bytes[version_at] != std::byte{3} || bytes[address_bytes_at] != std::byte{8}) {
        return Consistency::other_kind;
    }
    if (lookup3(bytes.first(checksum_at)) != load<uint32_t>(bytes, checksum_at)) {
        return Consistency::damaged;
    }
    if (bytes[flags_at] == std::byte{0}) {
        return Consistency::closed;
    }
    bytes[flags_at] = std::byte{0};
    store(bytes, end_of_file_at, std::max(load<uint64_t>(bytes, end_of_file_at), file_bytes));
    store(bytes, checksum_at, lookup3(bytes.first(checksum_at)));
    return Consistency::repaired;
}

Consistency clear_open_mark(int file, const std::string& path) {
    Superblock superblock{};
    struct stat status {};
    const ssize_t got = pread(file, superblock.data(), superblock.size(), 0);
    if (got < 0 || fstat(file, &status) != 0) {
        throw RunError("cannot read " + path + ": " + errno_text());
    }
    if (static_cast<size_t>(got) < superblock.size()) {
        return Consistency::other_kind;
    }
    const Consistency found = clear_open_mark(superblock, static_cast<uint64_t>(status.st_size));
    if (found == Consistency::repaired &&
        pwrite(file, superblock.data(), superblock.size(), 0) != ssize_t{superblock_bytes}) {
        throw RunError("cannot write " + path + ": " + errno_text());
    }
    return found;
}

}  // namespace echelle::record
