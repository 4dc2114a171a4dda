#include "common/spectrum_ring.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "common/clock.hpp"
#include "common/error.hpp"
#include "common/invariant.hpp"

namespace echelle {
namespace {

constexpr uint64_t usual_bytes = uint64_t{16} << 20;
constexpr uint64_t most_bytes = uint64_t{256} << 20;
constexpr uint64_t fewest_slots = 4;
constexpr uint64_t spectra_of_a_channel = 4;
constexpr uint64_t slot_alignment = 64;

uint64_t stride_for(size_t packet_bytes) {
    return (spectrum_packet_offset + packet_bytes + slot_alignment - 1) / slot_alignment *
           slot_alignment;
}

uint64_t slots_for(uint32_t channels, uint64_t stride) {
    const uint64_t wanted =
        std::max(usual_bytes / stride, spectra_of_a_channel * uint64_t{channels});
    return std::max(fewest_slots, std::min(wanted, most_bytes / stride));
}

}  // namespace

SpectrumRingWriter::SpectrumRingWriter(uint32_t channels, size_t packet_bytes_most) {
    slot_stride_ = stride_for(packet_bytes_most);
    slot_count_ = slots_for(channels, slot_stride_);
    const uint64_t bytes = sizeof(SpectrumRingHeader) + slot_count_ * slot_stride_;
    memory_ = SharedMemory::anonymous("the ring of spectra", bytes, false);
    SpectrumRingHeader& made = header();
    std::memcpy(made.magic, spectrum_ring_magic, sizeof made.magic);
    made.version = spectrum_ring_version;
    made.slots_offset = sizeof(SpectrumRingHeader);
    made.slot_count = slot_count_;
    made.slot_stride = slot_stride_;
    made.region_bytes = memory_.size();
    made.packet_offset = spectrum_packet_offset;
    made.packet_bytes_most = static_cast<uint32_t>(packet_bytes_most);
    made.channels = channels;
    made.publisher_pid = static_cast<uint32_t>(getpid());
    made.state.store(static_cast<uint32_t>(SpectrumRingState::running), std::memory_order_release);
}

void SpectrumRingWriter::write(std::span<const std::byte> packet, uint32_t channel,
                               uint64_t spectrum) {
    ECHELLE_INVARIANT(packet.size() <= header().packet_bytes_most);
    std::byte* at =
        memory_.data() + sizeof(SpectrumRingHeader) + position_ % slot_count_ * slot_stride_;
    auto& slot = *reinterpret_cast<SpectrumSlot*>(at);
    slot.sequence.store(2 * position_ + 1, std::memory_order_relaxed);
    // Keeps the packet's bytes from being written above the odd sequence.
    std::atomic_thread_fence(std::memory_order_release);
    slot.spectrum.store(spectrum, std::memory_order_relaxed);
    slot.written_ns.store(monotonic_ns(), std::memory_order_relaxed);
    slot.channel.store(channel, std::memory_order_relaxed);
    slot.packet_bytes.store(static_cast<uint32_t>(packet.size()), std::memory_order_relaxed);
    std::copy(packet.begin(), packet.end(), at + spectrum_packet_offset);
    slot.sequence.store(2 * position_ + 2, std::memory_order_release);
    header().head.store(++position_, std::memory_order_release);
}

void SpectrumRingWriter::end() {
    header().state.store(static_cast<uint32_t>(SpectrumRingState::ended),
                         std::memory_order_release);
}

FileDescriptor SpectrumRingWriter::read_only_descriptor() const {
    // Opened anew: a duplicate of ours could be mapped for writing.
    const std::string path = "/proc/self/fd/" + std::to_string(memory_.descriptor());
    return FileDescriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

SpectrumRingReader::SpectrumRingReader(std::span<const std::byte> region) {
    const auto refuse = [](const std::string& why) {
        throw UsageError("this is not a ring of spectra that can be read: " + why +
                         "; docs/feed.md describes it");
    };
    if (region.size() < sizeof(SpectrumRingHeader)) {
        refuse("it has " + std::to_string(region.size()) + " bytes, a header alone has 256");
    }
    header_ = reinterpret_cast<const SpectrumRingHeader*>(region.data());
    if (std::memcmp(header_->magic, spectrum_ring_magic, sizeof spectrum_ring_magic) != 0) {
        refuse("its first bytes are not ECHSPEC");
    }
    if (header_->version >> 16 != spectrum_ring_version >> 16) {
        refuse("its version is " + std::to_string(header_->version >> 16) + ", this reader's is 1");
    }
    slot_count_ = header_->slot_count;
    slot_stride_ = header_->slot_stride;
    packet_offset_ = header_->packet_offset;
    packet_bytes_most_ = header_->packet_bytes_most;
    const uint64_t offset = header_->slots_offset;
    if (slot_count_ == 0 || slot_stride_ == 0 || slot_stride_ % slot_alignment != 0 ||
        offset % slot_alignment != 0 || offset < sizeof(SpectrumRingHeader) ||
        packet_offset_ < sizeof(SpectrumSlot) ||
        uint64_t{packet_offset_} + packet_bytes_most_ > slot_stride_ || offset > region.size() ||
        slot_count_ > (region.size() - offset) / slot_stride_) {
        refuse("its slots do not fit into its " + std::to_string(region.size()) + " bytes");
    }
    slots_ = region.data() + offset;
    position_ = head();
}

const SpectrumSlot& SpectrumRingReader::slot(uint64_t position) const {
    return *reinterpret_cast<const SpectrumSlot*>(slots_ + position % slot_count_ * slot_stride_);
}

std::optional<SpectrumRingReader::Entry> SpectrumRingReader::next() {
    while (position_ < head()) {
        const SpectrumSlot& found = slot(position_);
        const uint64_t sequence = found.sequence.load(std::memory_order_acquire);
        Entry entry;
        entry.position = position_;
        entry.spectrum = found.spectrum.load(std::memory_order_relaxed);
        entry.written_ns = found.written_ns.load(std::memory_order_relaxed);
        entry.channel = found.channel.load(std::memory_order_relaxed);
        const uint32_t bytes = found.packet_bytes.load(std::memory_order_relaxed);
        if (sequence != 2 * position_ + 2 || bytes > packet_bytes_most_) {
            skip_what_is_gone();
            continue;
        }
        entry.packet = {reinterpret_cast<const std::byte*>(&found) + packet_offset_, bytes};
        ++position_;
        return entry;
    }
    return std::nullopt;
}

bool SpectrumRingReader::confirm(const Entry& entry) {
    // Keeps the reads of the packet above the second look at its sequence.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot(entry.position).sequence.load(std::memory_order_relaxed) == 2 * entry.position + 2) {
        return true;
    }
    ++missed_;
    return false;
}

void SpectrumRingReader::skip_what_is_gone() {
    const uint64_t written = head();
    const uint64_t oldest = written > slot_count_ ? written - slot_count_ : 0;
    // A quarter of the ring is room to come abreast.
    const uint64_t go_on_at = std::max(oldest + slot_count_ / 4, position_ + 1);
    missed_ += go_on_at - position_;
    position_ = go_on_at;
}

bool SpectrumRingReader::ended() const {
    const bool no_more = header_->state.load(std::memory_order_acquire) ==
                         static_cast<uint32_t>(SpectrumRingState::ended);
    return no_more && position_ >= head();
}

}  // namespace echelle
