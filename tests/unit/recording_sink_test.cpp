#include "coordinator/sinks/recording_sink.hpp"

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <gtest/gtest.h>

#include "common/error.hpp"

namespace echelle {
namespace {

namespace fs = std::filesystem;

class RecordingSinkTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/echelle-test-XXXXXX";
        directory_ = mkdtemp(name);
    }
    void TearDown() override { fs::remove_all(directory_); }
    std::string directory_;
    const std::array<std::byte, 3> packet_{std::byte{7}, std::byte{8}, std::byte{9}};
};

TEST_F(RecordingSinkTest, HasNoNameUntilItIsFinished) {
    const std::string path = directory_ + "/a.spectra";
    {
        RecordingSink sink(path);
        sink.write(packet_);
        EXPECT_FALSE(fs::exists(path));
        sink.finish();
    }
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(bytes, std::string("\0\0\0\3\7\10\11", 7));
}

TEST_F(RecordingSinkTest, LeavesNothingWhenItIsNotFinished) {
    {
        RecordingSink sink(directory_ + "/a.spectra");
        sink.write(packet_);
    }
    EXPECT_TRUE(fs::is_empty(directory_));
}

TEST_F(RecordingSinkTest, ReplacesAnEarlierRecordingOnlyAtTheEnd) {
    const std::string path = directory_ + "/a.spectra";
    std::ofstream(path) << "earlier";
    RecordingSink sink(path);
    sink.write(packet_);
    EXPECT_EQ(fs::file_size(path), 7U);
    sink.write(packet_);
    sink.finish();
    EXPECT_EQ(fs::file_size(path), 14U);
}

TEST_F(RecordingSinkTest, SaysWhyAFileCannotBeMade) {
    EXPECT_THROW(RecordingSink(directory_ + "/missing/a.spectra"), UsageError);
    EXPECT_THROW(RecordingSink{directory_}, UsageError);
}

}  // namespace
}  // namespace echelle
