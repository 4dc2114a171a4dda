// What the tests of file sources share: files to read, and the frames that a source makes of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/ring.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {

// A folder of its own for each test, removed at its end.
class TemporaryFolder {
  public:
    TemporaryFolder() {
        std::string pattern = testing::TempDir() + "echelle-XXXXXX";
        path_ = mkdtemp(pattern.data());
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }

    std::string file(std::string_view name) const { return path_ + "/" + std::string(name); }
    std::string write(std::string_view name, std::string_view bytes) const {
        std::ofstream(file(name), std::ios::binary) << bytes;
        return file(name);
    }

  private:
    std::string path_;
};

// Bytes as a recorder would write them: little-endian, written out by hand.
inline std::string little_endian(const std::vector<int>& values) {
    std::string bytes;
    for (const int value : values) {
        bytes += static_cast<char>(value & 0xFF);
        bytes += static_cast<char>((value >> 8) & 0xFF);
    }
    return bytes;
}

struct PlayedFrame {
    uint64_t frame_index = 0;
    uint64_t first_sample = 0;
    uint32_t valid_samples = 0;
    uint32_t flags = 0;
    std::vector<int16_t> values;  // of the whole frame
};

// Runs the source into a ring of three frames, so that it has to wait, and copies what comes out.
// What run() throws comes out here.
inline std::vector<PlayedFrame> play(Source& source) {
    Ring ring = Ring::anonymous(source.stream(), 3, source.ring_margin());
    std::exception_ptr failure;
    const std::atomic<bool> stop{false};
    std::thread producer([&] {
        RingWriter writer(ring);
        try {
            source.run(writer, OverrunPolicy::block, stop);
        } catch (...) {
            failure = std::current_exception();
        }
        writer.end();
    });
    std::vector<PlayedFrame> frames;
    for (uint64_t position = 0;; ++position) {
        while (!ring.wait_for_frame(position, 1'000'000'000) && !ring.ended()) {
        }
        if (ring.head() <= position) {
            break;
        }
        EXPECT_TRUE(ring.holds(position));
        const RingSlot& slot = ring.slot(position);
        const std::span<int16_t> values = ring.frame(position);
        frames.push_back({slot.frame_index, slot.first_sample, slot.valid_samples, slot.flags,
                          std::vector<int16_t>(values.begin(), values.end())});
        ring.release_before(position + 1);
    }
    producer.join();
    if (failure) {
        std::rethrow_exception(failure);
    }
    return frames;
}

// The message of the UsageError that `open` throws; empty, and a failed test, when it throws none.
template <typename Open>
std::string usage_error(Open open) {
    try {
        open();
    } catch (const UsageError& error) {
        const std::string message = error.what();
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        return message;
    }
    ADD_FAILURE() << "no UsageError";
    return {};
}

inline void expect_mentions(const std::string& message,
                            std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) {
        EXPECT_NE(message.find(part), std::string::npos)
            << "'" << part << "' is missing in: " << message;
    }
}

}  // namespace echelle
