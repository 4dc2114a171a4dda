// Many subscribers of one feed or hub, read as fast as they can be: what bench/hub_fan_out.py
// starts.
//
//     bench_hub_fan_out ENDPOINT SUBSCRIBERS SECONDS
//
// Prints JSON: what all of them got, and what their sequence numbers tell that they missed. The
// time runs from when each has got something.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "common/packet_fields.hpp"

namespace {

using Clock = std::chrono::steady_clock;

struct Reader {
    zmq::socket_t socket;
    std::map<uint32_t, uint64_t> sequences = {};  // the last of each channel
    uint64_t messages = 0;
    uint64_t missed = 0;
};

struct Totals {
    uint64_t messages = 0;
    uint64_t bytes = 0;
    uint64_t missed = 0;
};

// Takes what is there, some at a time.
void read(Reader& reader, Totals& totals) {
    constexpr int most_at_once = 64;
    zmq::message_t topic;
    zmq::message_t payload;
    for (int i = 0; i < most_at_once; ++i) {
        if (!reader.socket.recv(topic, zmq::recv_flags::dontwait)) {
            return;
        }
        static_cast<void>(reader.socket.recv(payload, zmq::recv_flags::none));
        if (payload.size() < echelle::packet_bytes_1_1(0)) {
            continue;
        }
        const auto* bytes = static_cast<const std::byte*>(payload.data());
        const uint32_t channel = echelle::read_header(bytes).channel_id;
        const uint64_t sequence =
            echelle::sequence_in(bytes + payload.size() - echelle::packet_trailer_bytes);
        const auto [last, is_first] = reader.sequences.try_emplace(channel, sequence);
        totals.missed += is_first ? 0 : sequence - last->second - 1;
        last->second = sequence;
        ++reader.messages;
        ++totals.messages;
        totals.bytes += payload.size();
    }
}

void read_all(std::vector<Reader>& readers, std::vector<zmq::pollitem_t>& items, Totals& totals) {
    constexpr long wait_ms = 100;
    static_cast<void>(zmq_poll(items.data(), static_cast<int>(items.size()), wait_ms));
    for (size_t i = 0; i < items.size(); ++i) {
        if ((items[i].revents & ZMQ_POLLIN) != 0) {
            read(readers[i], totals);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fputs("bench_hub_fan_out: give ENDPOINT SUBSCRIBERS SECONDS\n", stderr);
        return 2;
    }
    const size_t count = std::stoul(argv[2]);
    const std::chrono::duration<double> length(std::stod(argv[3]));
    zmq::context_t context(1);
    std::vector<Reader> readers;
    std::vector<zmq::pollitem_t> items;
    for (size_t i = 0; i < count; ++i) {
        readers.push_back({zmq::socket_t(context, zmq::socket_type::sub)});
        zmq::socket_t& socket = readers.back().socket;
        socket.set(zmq::sockopt::linger, 0);
        socket.set(zmq::sockopt::subscribe, "psd/");
        socket.connect(argv[1]);
        items.push_back({socket.handle(), 0, ZMQ_POLLIN, 0});
    }
    Totals before_all;
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    size_t started = 0;
    while (started < count && Clock::now() < deadline) {
        read_all(readers, items, before_all);
        started = 0;
        for (const Reader& reader : readers) {
            started += reader.messages > 0 ? 1 : 0;
        }
    }
    if (started < count) {
        std::fprintf(stderr, "bench_hub_fan_out: %zu of %zu subscribers got nothing in 20 s\n",
                     count - started, count);
        return 1;
    }
    Totals totals;
    const auto began = Clock::now();
    while (Clock::now() - began < length) {
        read_all(readers, items, totals);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    std::printf("{\"seconds\": %.3f, \"messages\": %llu, \"bytes\": %llu, \"missed\": %llu}\n",
                seconds, static_cast<unsigned long long>(totals.messages),
                static_cast<unsigned long long>(totals.bytes),
                static_cast<unsigned long long>(totals.missed));
    return 0;
}
