// echelle-watch: one line for each spectrum of a running coordinator, until it ends.
//
//     echelle-watch [--ring | --float16 | --decibel8] [INSTANCE|ENDPOINT [CHANNEL]...]
//
// Each line has the channel, its spectrum's sequence number, the number of values and their sum;
// the last one, what was missed.
#include <cinttypes>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "echelle/feed.hpp"
#include "echelle/ring.hpp"

namespace {

using namespace echelle::client;

void print(const SpectrumPacket& packet) {
    double sum = 0;
    for (const float value : packet.values()) {
        sum += static_cast<double>(value);
    }
    std::printf("%u %" PRIu64 " %u %.9g\n", packet.channel_id,
                packet.trailer ? packet.trailer->sequence : 0, packet.fft_size, sum);
}

uint64_t watch_ring(const std::string& target) {
    SpectrumRing ring(target);
    std::vector<std::byte> copy;
    while (!ring.ended()) {
        const auto entry = ring.next();
        if (!entry) {
            ring.wait(std::chrono::milliseconds(100));
            continue;
        }
        copy.assign(entry->packet.begin(), entry->packet.end());
        if (ring.confirm(*entry)) {
            print(decode_packet(copy));
        }
    }
    return ring.missed();
}

uint64_t watch_feed(const std::string& target, SubscribeOptions options) {
    Subscriber feed(target, std::move(options));
    while (const auto spectrum = feed.next()) {
        print(spectrum->packet);
    }
    return feed.missed();
}

}  // namespace

int main(int argc, char** argv) {
    try {
        SubscribeOptions options;
        std::vector<std::string> arguments(argv + 1, argv + argc);
        bool ring = false;
        if (!arguments.empty() && arguments.front().starts_with("--")) {
            const std::string option = arguments.front();
            arguments.erase(arguments.begin());
            ring = option == "--ring";
            if (option == "--float16" || option == "--decibel8") {
                options.coding = option == "--float16" ? Coding::float16 : Coding::decibel8;
            } else if (!ring) {
                std::fprintf(stderr,
                             "echelle-watch: %s is not known: give --ring, --float16 or "
                             "--decibel8\n",
                             option.c_str());
                return 2;
            }
        }
        const std::string target = arguments.empty() ? "echelle" : arguments.front();
        for (size_t i = 1; i < arguments.size(); ++i) {
            options.channels = options.channels.value_or(std::vector<uint32_t>{});
            options.channels->push_back(static_cast<uint32_t>(std::stoul(arguments[i])));
        }
        options.timeout = std::chrono::seconds(30);
        const uint64_t missed = ring ? watch_ring(target) : watch_feed(target, std::move(options));
        std::printf("missed %" PRIu64 "\n", missed);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "echelle-watch: %s\n", error.what());
        return 1;
    }
}
