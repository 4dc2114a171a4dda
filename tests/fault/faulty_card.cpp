// faulty_card FOLDER [KEY=VALUE …]: a capture card's device node as a file in FUSE, which does to
// its reader what drivers have been seen to do. FOLDER/xdma0_c2h_0 is the DMA channel: no position,
// one reader at a time, reads end with the packet if it was opened with O_TRUNC. FOLDER/truth says
// what has been sent and lost, a name and a count on each line.
//
//   channels=, samples=        of a frame (128, 2048)
//   frames=                    how many there are (endless); 0: every read times out
//   pace=                      frames a second; a card that nobody reads loses none here (as read)
//   faults=FAULT,FAULT,…       each N:NAME[=VALUE], at frame N, or *N:NAME[=VALUE], at every Nth
//   answers=no                 the DMA engine sends nothing at all
//
// A fault of the frame (the first that fits holds):
//   drop, overflow   it is lost, and the card doesn't say so, or says so in the next header
//   data, header     a bit of its samples, of its header is wrong
//   stale, stale-tail  8 KiB of another frame in its middle, at its end
//   torn=N, late-start=N  N bytes are missing in its middle, at its beginning
//   garbage=N        N bytes of noise before it
//   repeat, old      it is sent twice; the frame five before is sent once more before it
//   restart          the card begins anew with it: another stream, sequence and sample index 0
// Of the reads (the frame is sound, or lost where it says so):
//   short=N          the read that begins it returns N bytes
//   late=MS          it returns later
//   refuse=ERRNO     it fails, and the next one gives the frame
//   fail=ERRNO       it fails and the frame is lost
//   ones             it gives nothing but ones until the device is opened again; the frame is lost
//   gone=MS          it fails with ENODEV, and so does open for so long; the frame is lost
//   hang             it returns when it is interrupted; dead: never
#define FUSE_USE_VERSION 31

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fuse3/fuse.h>

#include "common/card_frame.hpp"
#include "common/clock.hpp"
#include "common/crc32.hpp"
#include "tests/fault/card_pattern.hpp"

namespace echelle {
namespace {

constexpr size_t block = 8192;
constexpr const char* channel_path = "/xdma0_c2h_0";
constexpr const char* truth_path = "/truth";

struct Fault {
    uint64_t at = 0;
    bool every = false;
    std::string name;
    uint64_t value = 0;

    bool holds(uint64_t frame) const { return every ? frame % at == at - 1 : frame == at; }
};

struct Keys {
    CardFrameHeader header;
    uint64_t frames = UINT64_MAX;
    double pace = 0;
    bool answers = true;
    std::vector<Fault> faults;
};

void sleep_ns(int64_t ns) {
    const timespec pause{ns / 1'000'000'000, ns % 1'000'000'000};
    nanosleep(&pause, nullptr);
}

class Card {
  public:
    explicit Card(Keys keys)
        : keys_(std::move(keys)),
          pattern_(keys_.header.geometry.frame_bytes()),
          began_ns_(monotonic_ns()) {}

    int open(bool tlast) {
        const std::lock_guard lock(mutex_);
        if (monotonic_ns() < gone_until_ns_) {
            return -ENODEV;
        }
        if (is_open_) {
            return -EBUSY;
        }
        is_open_ = true;
        tlast_ = tlast;
        only_ones_ = false;
        return 0;
    }

    void release() {
        const std::lock_guard lock(mutex_);
        is_open_ = false;
    }

    int read(char* bytes, size_t size) {
        std::unique_lock lock(mutex_);
        if (!keys_.answers) {
            return never_return(lock, true);
        }
        size_t done = 0;
        while (done < size) {
            if (only_ones_) {
                std::memset(bytes, 0xFF, size);
                return static_cast<int>(size);
            }
            if (sent_ == packet_.size()) {
                if (next_ >= keys_.frames) {
                    break;
                }
                const int error = begin_packet(lock);
                if (error != 0) {
                    return done > 0 ? static_cast<int>(done) : error;
                }
                continue;
            }
            const size_t most = std::min(size - done, short_ > 0 ? short_ : size);
            const size_t count = std::min(most, packet_.size() - sent_);
            std::memcpy(bytes + done, packet_.data() + sent_, count);
            sent_ += count;
            done += count;
            if (std::exchange(short_, 0) > 0 || (tlast_ && sent_ == packet_.size())) {
                break;
            }
        }
        if (done == 0 && next_ > 0) {
            return never_return(lock, true);  // it has sent all that there is
        }
        if (done == 0) {
            lock.unlock();
            sleep_ns(20'000'000);
            return -ETIMEDOUT;
        }
        return static_cast<int>(done);
    }

    std::string truth() {
        const std::lock_guard lock(mutex_);
        std::string text = "sent " + std::to_string(next_) + "\n";
        for (const auto& [name, count] : truth_) {
            text += name + " " + std::to_string(count) + "\n";
        }
        return text;
    }

  private:
    // Takes up the next frame; an errno when the read that wanted it fails.
    int begin_packet(std::unique_lock<std::mutex>& lock) {
        if (resend_ != nullptr) {
            packet_ = *std::exchange(resend_, nullptr);
            sent_ = 0;
            return 0;
        }
        const uint64_t frame = next_;
        wait_for_pace(lock);
        const Fault* const fault = take_fault(frame);
        const std::string name = fault != nullptr ? fault->name : "";
        if (name == "hang" || name == "dead") {
            return never_return(lock, name == "hang");
        }
        if (name == "late") {
            lock.unlock();
            sleep_ns(static_cast<int64_t>(fault->value) * 1'000'000);
            lock.lock();
        }
        if (name == "refuse") {
            ++truth_["refused"];
            return -static_cast<int>(fault->value);
        }
        ++next_;
        if (name == "fail" || name == "gone" || name == "ones") {
            ++truth_["device"];
            only_ones_ = name == "ones";
            if (name == "gone") {
                gone_until_ns_ = monotonic_ns() + static_cast<int64_t>(fault->value) * 1'000'000;
            }
            return name == "ones" ? 0 : name == "gone" ? -ENODEV : -static_cast<int>(fault->value);
        }
        if (name == "drop" || name == "overflow") {
            ++truth_[name == "drop" ? "unexplained" : "overflow"];
            overflow_ = name == "overflow";
            return 0;
        }
        if (name == "restart") {
            ++keys_.header.stream;
            first_of_stream_ = frame;
            ++truth_["restarts"];
        }
        make_packet(frame);
        spoil_packet(name, fault != nullptr ? fault->value : 0);
        sent_ = 0;
        return 0;
    }

    void wait_for_pace(std::unique_lock<std::mutex>& lock) {
        if (keys_.pace <= 0) {
            return;
        }
        const int64_t due_ns =
            began_ns_ + static_cast<int64_t>(static_cast<double>(next_) / keys_.pace * 1e9);
        const int64_t wait_ns = due_ns - monotonic_ns();
        if (wait_ns > 0) {
            lock.unlock();
            sleep_ns(wait_ns);
            lock.lock();
        }
    }

    // Each fault of a frame happens once, also where the frame is asked for twice. Repeated faults
    // leave a sound frame between them: of two that meet in one read nobody could tell them apart.
    const Fault* take_fault(uint64_t frame) {
        if (faulted_frame_ == frame + 1) {
            return nullptr;
        }
        const bool is_near = frame > 0 && faulted_frame_ == frame;
        for (const Fault& fault : keys_.faults) {
            if (fault.holds(frame) && !(fault.every && is_near)) {
                faulted_frame_ = frame + 1;
                return &fault;
            }
        }
        return nullptr;
    }

    void make_packet(uint64_t frame) {
        CardFrameHeader header = keys_.header;
        header.sequence = frame - first_of_stream_;
        header.sample_index = header.sequence * header.geometry.samples;
        header.flags |= std::exchange(overflow_, false) ? card_overflow : 0U;
        before_ = std::move(packet_);
        packet_.resize(card_frame_bytes(header));
        const std::span<std::byte> bytes(packet_);
        const auto payload = bytes.subspan(header.header_bytes, header.geometry.frame_bytes());
        pattern_.write(frame, payload);
        write_card_header(header, bytes);
        write_card_trailer({crc32(payload), 0, header.sequence}, bytes.last(card_trailer_bytes));
        history_[frame % history_.size()] = packet_;
    }

    void spoil_packet(const std::string& name, uint64_t value) {
        const auto middle = packet_.begin() + static_cast<std::ptrdiff_t>(packet_.size() / 2);
        const auto count = static_cast<std::ptrdiff_t>(value);
        short_ = name == "short" ? value : 0;
        if (name == "data") {
            *middle ^= std::byte{0x10};
            ++truth_["bad_data"];
        } else if (name == "header") {
            packet_[40] ^= std::byte{0x01};
            ++truth_["bad_header"];
        } else if (name == "stale") {
            std::copy_n(before_.begin() + (middle - packet_.begin()), block, middle);
            ++truth_["bad_data"];
        } else if (name == "stale-tail") {
            std::copy_n(before_.end() - block, block, packet_.end() - block);
            ++truth_["torn"];
        } else if (name == "torn") {
            packet_.erase(middle, middle + count);
            ++truth_["torn"];
        } else if (name == "late-start") {
            packet_.erase(packet_.begin(), packet_.begin() + count);
            ++truth_["late_start"];
        } else if (name == "garbage") {
            packet_.insert(packet_.begin(), value, std::byte{'E'});
            ++truth_["garbage"];
        } else if (name == "repeat") {
            resend_ = &history_[(next_ - 1) % history_.size()];
            ++truth_["repeated"];
        } else if (name == "old") {
            resend_ = &history_[(next_ - 1) % history_.size()];
            packet_ = history_[(next_ - 6) % history_.size()];
            ++truth_["stale"];
        }
    }

    // Until it is interrupted, if it lets itself be.
    static int never_return(std::unique_lock<std::mutex>& lock, bool can_be_interrupted) {
        lock.unlock();
        while (!can_be_interrupted || fuse_interrupted() == 0) {
            sleep_ns(5'000'000);
        }
        return -EINTR;
    }

    Keys keys_;
    CardPattern pattern_;
    int64_t began_ns_;
    std::mutex mutex_;  // guards the rest
    bool is_open_ = false;
    bool tlast_ = false;
    uint64_t next_ = 0;  // frame
    uint64_t first_of_stream_ = 0;
    uint64_t faulted_frame_ = 0;  // + 1
    std::vector<std::byte> packet_;
    std::vector<std::byte> before_;
    std::array<std::vector<std::byte>, 8> history_;
    const std::vector<std::byte>* resend_ = nullptr;
    size_t sent_ = 0;
    size_t short_ = 0;
    bool overflow_ = false;
    bool only_ones_ = false;
    int64_t gone_until_ns_ = 0;
    std::map<std::string, uint64_t> truth_;
};

Card& card() {
    return *static_cast<Card*>(fuse_get_context()->private_data);
}

int get_attributes(const char* path, struct stat* status, fuse_file_info* /*file*/) {
    *status = {};
    if (std::strcmp(path, "/") == 0) {
        status->st_mode = S_IFDIR | 0755;
        status->st_nlink = 2;
        return 0;
    }
    if (std::strcmp(path, channel_path) != 0 && std::strcmp(path, truth_path) != 0) {
        return -ENOENT;
    }
    status->st_mode = S_IFREG | 0644;
    status->st_nlink = 1;
    return 0;
}

int open_file(const char* path, fuse_file_info* file) {
    file->direct_io = 1;
    const bool tlast = (file->flags & O_TRUNC) != 0;
    return std::strcmp(path, channel_path) == 0 ? card().open(tlast) : 0;
}

int read_file(const char* path, char* bytes, size_t size, off_t offset, fuse_file_info*) {
    if (std::strcmp(path, channel_path) == 0) {
        return card().read(bytes, size);
    }
    const std::string text = card().truth();
    const size_t from = std::min(static_cast<size_t>(offset), text.size());
    return static_cast<int>(text.copy(bytes, size, from));
}

int release_file(const char* path, fuse_file_info*) {
    if (std::strcmp(path, channel_path) == 0) {
        card().release();
    }
    return 0;
}

void* begin(fuse_conn_info* connection, fuse_config* config) {
    connection->want |= connection->capable & FUSE_CAP_ATOMIC_O_TRUNC;
    config->intr = 1;  // a read that is interrupted hears of it
    config->intr_signal = SIGUSR1;
    config->attr_timeout = 0;
    return fuse_get_context()->private_data;
}

Fault parse_fault(const std::string& text) {
    Fault fault;
    fault.every = text.front() == '*';
    const size_t colon = text.find(':');
    const size_t equals = text.find('=');
    fault.at = std::strtoull(text.c_str() + (fault.every ? 1 : 0), nullptr, 10);
    fault.name = text.substr(colon + 1, equals == std::string::npos ? equals : equals - colon - 1);
    fault.value =
        equals == std::string::npos ? 0 : std::strtoull(text.c_str() + equals + 1, nullptr, 10);
    return fault;
}

void take_key(const std::string& key, const std::string& value, Keys& keys) {
    if (key == "channels") {
        keys.header.geometry.channels = static_cast<uint32_t>(std::stoul(value));
    } else if (key == "samples") {
        keys.header.geometry.samples = static_cast<uint32_t>(std::stoul(value));
    } else if (key == "frames") {
        keys.frames = std::stoull(value);
    } else if (key == "pace") {
        keys.pace = std::stod(value);
    } else if (key == "answers") {
        keys.answers = value != "no";
    } else if (key == "faults") {
        for (size_t at = 0; at < value.size();) {
            const size_t comma = std::min(value.find(',', at), value.size());
            keys.faults.push_back(parse_fault(value.substr(at, comma - at)));
            at = comma + 1;
        }
    } else {
        std::fprintf(stderr, "faulty_card: unknown key '%s'\n", key.c_str());
        std::exit(2);  // NOLINT(concurrency-mt-unsafe): no other thread yet
    }
}

int serve(int argc, char** argv) {
    Keys keys;
    keys.header.flags = card_has_trailer;
    keys.header.rate_hz = 10'000'000;
    for (int i = 2; i < argc; ++i) {
        const std::string text = argv[i];
        const size_t equals = text.find('=');
        take_key(text.substr(0, equals), text.substr(equals + 1), keys);
    }
    Card served(std::move(keys));
    fuse_operations operations{};
    operations.init = begin;
    operations.getattr = get_attributes;
    operations.open = open_file;
    operations.read = read_file;
    operations.release = release_file;
    // libfuse itself does so only for an option that it no longer has.
    std::signal(SIGUSR1, [](int) {});
    std::string foreground = "-f";
    std::string mount_options = "-omax_threads=10";
    std::vector<char*> arguments{argv[0], argv[1], foreground.data(), mount_options.data()};
    return fuse_main(static_cast<int>(arguments.size()), arguments.data(), &operations, &served);
}

}  // namespace
}  // namespace echelle

int main(int argc, char** argv) {
    if (argc < 2) {
        std::fprintf(stderr, "usage: faulty_card FOLDER [KEY=VALUE ...]\n");
        return 2;
    }
    return echelle::serve(argc, argv);
}
