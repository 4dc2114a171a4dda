// Datagrams of a fixed header and samples. The header's one field that is read is a sequence number
// that grows by the same step with every datagram; its width, byte order and place are said by the
// user, since nothing in the bytes tells them (gr-grnet issue 6).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "common/sequence_field.hpp"
#include "coordinator/sources/datagram.hpp"

namespace echelle {

struct RawHeader {
    uint32_t bytes = 0;                     // of the whole header
    std::optional<SequenceField> sequence;  // absent: datagrams are taken as they come
    uint64_t step = 1;
};

class RawFraming final : public Framing {
  public:
    RawFraming(const SampleLayout& layout, const RawHeader& header)
        : layout_(layout), header_(header) {}

    DatagramFault place(std::span<const std::byte> datagram, PacketPlace& place) override;
    int64_t longest_loss() const override;
    std::string remark() const override;
    std::string contradiction() const override;

  private:
    void watch_byte_order(uint64_t sequence);
    DatagramFault begin_anew(uint64_t sequence, PacketPlace& place);

    SampleLayout layout_;
    RawHeader header_;
    bool has_last_ = false;
    uint64_t last_sequence_ = 0;
    std::optional<uint64_t> stray_sequence_;  // the last one off the step
    int64_t last_number_ = 0;
    // How often one number followed the other, as the user says and in the other byte order.
    uint64_t in_order_ = 0;
    uint64_t in_other_order_ = 0;
};

}  // namespace echelle
