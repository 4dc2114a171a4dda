// A card's faults, one by one and all together: the real source reads a device in FUSE
// (faulty_card) that does what drivers have been seen to do. Every frame that comes out is compared
// with what was sent, byte for byte, and every frame that does not must be counted under its cause.
// Each test is named after what it guards; the numbers are those of public reports.
//
// ECHELLE_LONG_TESTS=1: the mixture at the end lasts 60 seconds instead of 10.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "common/clock.hpp"
#include "tests/fault/card_pattern.hpp"
#include "tests/unit/played_source.hpp"

namespace echelle {
namespace {

using Counts = std::map<std::string, uint64_t>;

bool wait_until(const std::function<bool()>& condition, double seconds) {
    const int64_t deadline = monotonic_ns() + static_cast<int64_t>(seconds * 1e9);
    while (!condition()) {
        if (monotonic_ns() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
}

bool fuse_is_there() {
    const FileDescriptor fuse(open("/dev/fuse", O_RDWR | O_CLOEXEC));
    return fuse && geteuid() == 0;
}

// The device, mounted in a folder of its own.
class FaultyCard {
  public:
    explicit FaultyCard(const std::vector<std::string>& keys) {
        std::vector<std::string> words{FAULTY_CARD, folder_.file("")};
        words.insert(words.end(), keys.begin(), keys.end());
        pid_ = fork();
        if (pid_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            std::vector<char*> arguments;
            for (std::string& word : words) {
                arguments.push_back(word.data());
            }
            arguments.push_back(nullptr);
            execv(FAULTY_CARD, arguments.data());
            _exit(127);
        }
        const auto is_there = [this] {
            return access(truth_path().c_str(), F_OK) == 0 || waitpid(pid_, nullptr, WNOHANG) != 0;
        };
        EXPECT_TRUE(wait_until(is_there, 20)) << "the device did not appear";
    }
    FaultyCard(const FaultyCard&) = delete;
    FaultyCard& operator=(const FaultyCard&) = delete;
    ~FaultyCard() {
        umount2(folder_.file("").c_str(), MNT_DETACH);
        kill(pid_, SIGKILL);  // also ends reads that would never return
        waitpid(pid_, nullptr, 0);
    }

    std::string path() const { return folder_.file("xdma0_c2h_0"); }

    Counts truth() const {
        std::ifstream file(truth_path());
        Counts counts;
        std::string name;
        uint64_t count = 0;
        while (file >> name >> count) {
            counts[name] = count;
        }
        return counts;
    }

  private:
    std::string truth_path() const { return folder_.file("truth"); }

    TemporaryFolder folder_;
    pid_t pid_ = 0;
};

// What came out of the source.
struct Outcome {
    nlohmann::json facts;
    std::vector<PlayedFrame> stamps;  // without their values
    std::vector<uint64_t> numbers;    // of the card's frames, as their samples say
    uint64_t wrong = 0;               // whose samples are not the card's
    std::string failure;              // of run()
    double stop_s = 0;                // from the stop to the end of run()
};

// Reads until `enough` says so or the source ends by itself; a hang ends some time, and fails.
Outcome read_card(Source& source, const std::function<bool(const nlohmann::json&)>& enough) {
    Outcome outcome;
    const CardPattern pattern(source.stream().geometry.frame_bytes());
    Ring ring = Ring::anonymous(source.stream(), 16, source.ring_margin());
    std::atomic<bool> stop{false};
    std::atomic<int64_t> stopped_ns{0};
    std::thread producer([&] {
        RingWriter writer(ring);
        try {
            source.run(writer, OverrunPolicy::block, stop);
        } catch (const std::exception& error) {
            outcome.failure = error.what();
        }
        if (stop) {
            outcome.stop_s = static_cast<double>(monotonic_ns() - stopped_ns) / 1e9;
        }
        writer.end();
    });
    const int64_t deadline = monotonic_ns() + 200'000'000'000;
    for (uint64_t position = 0;;) {
        if (!stop && (enough(source.facts()) || monotonic_ns() > deadline)) {
            stopped_ns = monotonic_ns();
            stop = true;
        }
        if (!ring.wait_for_frame(position, 5'000'000)) {
            if (ring.ended() && ring.head() <= position) {
                break;
            }
            continue;
        }
        const auto payload = std::as_bytes(ring.frame(position));
        const RingSlot& slot = ring.slot(position);
        outcome.stamps.push_back(
            {slot.frame_index, slot.first_sample, slot.valid_samples, slot.flags, {}});
        outcome.numbers.push_back(CardPattern::number_of(payload));
        outcome.wrong += pattern.is_right(payload) ? 0 : 1;
        ring.release_before(++position);
    }
    producer.join();
    outcome.facts = source.facts();
    return outcome;
}

Counts lost(const Outcome& outcome) {
    return outcome.facts["lost"].get<Counts>();
}

uint64_t sum(const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), uint64_t{0},
                           [](uint64_t all, const auto& entry) { return all + entry.second; });
}

class CardFaults : public testing::Test {
  protected:
    void SetUp() override {
        if (!fuse_is_there()) {
            GTEST_SKIP() << "needs /dev/fuse and root";
        }
    }

    // Small frames (64 KiB) unless a test says otherwise.
    void insert(const std::string& faults, std::vector<std::string> more = {}) {
        std::vector<std::string> keys{"channels=16", "samples=2048", "frames=40"};
        keys.push_back("faults=" + faults);
        keys.insert(keys.end(), more.begin(), more.end());
        card_ = std::make_unique<FaultyCard>(keys);
    }
    std::unique_ptr<Source> open(const std::string& keys = "timeout=5") const {
        return open_source("xdma:" + card_->path() + "?" + keys, {});
    }
    // All of the card's frames, which are `frames` in number.
    Outcome read_all(uint64_t frames = 40, const std::string& keys = "timeout=5") const {
        const auto source = open(keys);
        return read_card(*source, [frames](const nlohmann::json& facts) {
            return facts["frames"].get<uint64_t>() + sum(facts["lost"].get<Counts>()) >= frames;
        });
    }
    // No frame is wrong, none twice, each index is its frame's, and losses are what was done.
    static void expect_books(const Outcome& outcome, uint64_t frames, const Counts& losses) {
        EXPECT_EQ(outcome.wrong, 0U);
        EXPECT_EQ(lost(outcome), losses) << outcome.facts.dump(1);
        ASSERT_EQ(outcome.numbers.size() + sum(losses), frames) << outcome.facts.dump(1);
        const std::set<uint64_t> once(outcome.numbers.begin(), outcome.numbers.end());
        EXPECT_EQ(once.size(), outcome.numbers.size());
        const uint64_t first = outcome.numbers.front();
        uint64_t expected = first;
        for (size_t i = 0; i < outcome.numbers.size(); ++i) {
            const uint64_t number = outcome.numbers[i];
            EXPECT_EQ(outcome.stamps[i].frame_index, number - first);
            EXPECT_EQ(outcome.stamps[i].first_sample, number * 2048);
            EXPECT_EQ((outcome.stamps[i].flags & frame_gap_before) != 0, number != expected);
            expected = number + 1;
        }
        EXPECT_EQ(outcome.failure, "");
    }

    std::unique_ptr<FaultyCard> card_;
};

TEST_F(CardFaults, WholeFramesGoStraightIntoTheRing) {
    insert("");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {});
    EXPECT_EQ(outcome.facts["framing"]["resynchronised"], 0);
    EXPECT_EQ(outcome.facts["framing"]["skipped_bytes"], 0);
    // But for the page in which the first header was found.
    EXPECT_EQ(outcome.facts["reads"]["copied_bytes"], 4096);
    EXPECT_EQ(outcome.facts["kind"], "device");
}

TEST_F(CardFaults, ReadsThatDoNotStopAtThePacketsEnd) {
    insert("");
    expect_books(read_all(40, "timeout=5&tlast=no"), 40, {});
}

// Reads of 15408, then 44112 bytes for packets of 59520: neither is a frame.
TEST_F(CardFaults, DmaIpDrivers353ShortReadsAreNoFrames) {
    insert("*3:short=15408,*5:short=1,*7:short=63");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {});
    EXPECT_EQ(outcome.facts["framing"]["skipped_bytes"], 0);
}

// Every read gives all ones: the card is gone, and these are no samples.
TEST_F(CardFaults, DmaIpDrivers133AllOnesAreALostDevice) {
    insert("10:ones");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {{"device", 1}});
    EXPECT_EQ(outcome.facts["trouble"], (nlohmann::json{{"all_ones", 1}}));
    EXPECT_EQ(outcome.facts["reopened"], 1);
}

TEST_F(CardFaults, DmaIpDrivers38AReadThatDoesNotReturnIsInterrupted) {
    insert("10:hang");
    const Outcome outcome = read_all(40, "timeout=0.3");
    expect_books(outcome, 40, {});
    EXPECT_EQ(outcome.facts["trouble"], (nlohmann::json{{"no_answer", 1}}));
    EXPECT_EQ(outcome.facts["reopened"], 1);
}

// Nothing can be done about such a read but to say so; the run still ends when it is told to.
TEST_F(CardFaults, DmaIpDrivers38AReadThatNeverReturnsIsLeftBehindAtTheEnd) {
    insert("10:dead");
    const auto source = open("timeout=0.3");
    const Outcome outcome = read_card(*source, [](const nlohmann::json& facts) {
        return facts["state"] == "not answering" && facts["trouble"].contains("no_answer");
    });
    EXPECT_EQ(outcome.numbers.size(), 10U);
    EXPECT_EQ(outcome.wrong, 0U);
    EXPECT_EQ(outcome.failure, "");
    EXPECT_LT(outcome.stop_s, 10);
}

TEST_F(CardFaults, Litepcie73AStaleBlockInsideAFrameIsNeverAveraged) {
    insert("*4:stale");
    expect_books(read_all(39), 39, {{"bad_data", 9}});
}

TEST_F(CardFaults, Litepcie120AStaleTailIsNeverAveraged) {
    insert("*4:stale-tail");
    expect_books(read_all(39), 39, {{"torn", 9}});
}

TEST_F(CardFaults, Litepcie120FramesReadTwiceAreUsedOnce) {
    insert("9:repeat,17:old,25:old");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {});
    EXPECT_EQ(outcome.facts["repeated"], 1);
    EXPECT_EQ(outcome.facts["stale"], 2);
}

// Without the marker, channels would be rotated by one for ever.
TEST_F(CardFaults, AdiHdl441AStreamThatBeginsTwoBytesLate) {
    insert("0:late-start=2");
    const Outcome outcome = read_all(39);
    ASSERT_FALSE(outcome.numbers.empty());
    EXPECT_EQ(outcome.numbers.front(), 1U);
    expect_books(outcome, 39, {});
    EXPECT_EQ(outcome.facts["framing"]["resynchronised"], 0);
}

TEST_F(CardFaults, GarbageBetweenFramesIsSkipped) {
    insert("9:garbage=3,19:garbage=8191");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {});
    EXPECT_EQ(outcome.facts["framing"]["skipped_bytes"], 8194);
    EXPECT_EQ(outcome.facts["framing"]["resynchronised"], 2);
}

TEST_F(CardFaults, EachLostFrameHasItsCause) {
    insert("3:drop,6:overflow,9:data,12:header,15:torn=2,18:torn=4096,21:fail=5,24:torn=64");
    const Outcome outcome = read_all();
    expect_books(outcome, 40,
                 {{"unexplained", 1},
                  {"overflow", 1},
                  {"bad_data", 1},
                  {"bad_header", 1},
                  {"torn", 3},
                  {"device", 1}});
    EXPECT_EQ(outcome.facts["flags"]["overflow"], 1);
}

// What each errno of the drivers leads to: read again, or open again.
TEST_F(CardFaults, ErrnosOfTheDrivers) {
    insert("3:refuse=110,6:refuse=62,9:refuse=5,12:refuse=22,15:refuse=4,18:gone=100");
    const Outcome outcome = read_all();
    expect_books(outcome, 40, {{"device", 1}});
    EXPECT_EQ(outcome.facts["trouble"],
              (nlohmann::json{
                  {"time_out", 2}, {"engine_error", 1}, {"misaligned", 1}, {"device_lost", 1}}));
    EXPECT_EQ(outcome.facts["reopened"], 3);
    EXPECT_GE(outcome.facts["failed_opens"], 1);
}

TEST_F(CardFaults, ACardThatBeginsAnewGoesOnInTime) {
    insert("20:restart");
    const auto source = open();
    const Outcome outcome =
        read_card(*source, [](const nlohmann::json& facts) { return facts["frames"] == 40; });
    ASSERT_EQ(outcome.numbers.size(), 40U);
    EXPECT_EQ(outcome.wrong, 0U);
    EXPECT_EQ(outcome.facts["restarts"], 1);
    EXPECT_EQ(outcome.stamps[20].frame_index, 20U);
    EXPECT_GE(outcome.stamps[20].first_sample, 20U * 2048);
    EXPECT_NE(outcome.stamps[20].flags & frame_gap_before, 0U);
    EXPECT_EQ(outcome.stamps[21].first_sample, outcome.stamps[20].first_sample + 2048);
}

TEST_F(CardFaults, WithoutReopeningTroubleEndsTheRun) {
    insert("10:fail=5");
    const Outcome outcome = read_all(40, "timeout=5&reopen=no");
    EXPECT_EQ(outcome.numbers.size(), 10U);
    expect_mentions(outcome.failure, {"xdma0_c2h_0", "Input/output error", "dmesg"});
}

TEST_F(CardFaults, OneReaderAtATime) {
    insert("");
    const auto first = open();
    expect_mentions(usage_error([this] { open(); }), {"xdma0_c2h_0", "another program", "stop it"});
}

TEST_F(CardFaults, NothingToReadIsRefusedInTime) {
    card_ = std::make_unique<FaultyCard>(
        std::vector<std::string>{"channels=2", "samples=64", "frames=0"});
    expect_mentions(usage_error([this] { open("timeout=0.2"); }),
                    {"sends no frames", "0.2 s", "header=none", "timed out"});
    card_ = std::make_unique<FaultyCard>(std::vector<std::string>{"answers=no"});
    expect_mentions(usage_error([this] { open("timeout=0.2"); }), {"sends no frames", "0.2 s"});
}

TEST_F(CardFaults, WithoutHeadersLossCannotBeSeen) {
    insert("");
    const auto source = open("header=none&channels=1&samples=32832&rate=1e6&layout=sample-major");
    expect_mentions(source->describe(), {"loss can't be seen"});
    const Outcome outcome =
        read_card(*source, [](const nlohmann::json& facts) { return facts["frames"] == 40; });
    ASSERT_EQ(outcome.stamps.size(), 40U);
    EXPECT_EQ(outcome.stamps[39].first_sample, 39U * 32832);
    EXPECT_EQ(outcome.facts["loss_can_be_seen"], false);
}

// At the geometry of the main job, every fault again and again, at different distances.
TEST_F(CardFaults, AllFaultsTogetherForAWhile) {
    const char* const long_tests = std::getenv("ECHELLE_LONG_TESTS");
    const bool is_long = long_tests != nullptr && std::string(long_tests) == "1";
    const uint64_t seconds = is_long ? 60 : 10;
    const uint64_t pace = 400;
    const uint64_t frames = seconds * pace + 1;
    card_ = std::make_unique<FaultyCard>(std::vector<std::string>{
        "channels=128", "samples=2048", "pace=" + std::to_string(pace),
        "frames=" + std::to_string(frames),
        "faults=*1009:hang,*499:gone=20,*397:ones,*307:fail=5,*211:refuse=110,"
        "*193:late=15,*181:overflow,*173:drop,*167:stale,*163:stale-tail,*157:torn=2,*151:torn="
        "8192,"
        "*149:data,*139:header,*137:repeat,*131:old,*127:garbage=777,*17:short=15408,"
        "*13:short=44112"});
    const Outcome outcome = read_all(frames, "timeout=0.5");
    Counts truth = card_->truth();
    Counts losses;
    for (const char* cause :
         {"bad_data", "torn", "bad_header", "device", "overflow", "unexplained"}) {
        losses[cause] = truth[cause];
        EXPECT_GE(truth[cause], seconds) << cause;
    }
    expect_books(outcome, frames, losses);
    EXPECT_EQ(outcome.facts["repeated"], truth["repeated"]);
    EXPECT_EQ(outcome.facts["stale"], truth["stale"]);
    std::printf("%zu frames of 512 KiB right, %llu lost to %s\n", outcome.numbers.size(),
                static_cast<unsigned long long>(sum(losses)), outcome.facts["lost"].dump().c_str());
}

}  // namespace
}  // namespace echelle
