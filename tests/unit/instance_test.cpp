#include "common/instance.hpp"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle {
namespace {

class InstanceTest : public testing::Test {
  protected:
    void SetUp() override {
        char name[] = "/tmp/echelle-test-XXXXXX";
        directory_ = mkdtemp(name);
        setenv("XDG_RUNTIME_DIR", directory_.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    }
    void TearDown() override {
        unsetenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
        std::filesystem::remove_all(directory_);
    }
    std::string directory_;
};

TEST_F(InstanceTest, IsLockedOnceAndLeavesNothing) {
    {
        const Instance first = Instance::lock("one");
        EXPECT_THROW(Instance::lock("one"), UsageError);
        const Instance other = Instance::lock("two");
        first.remove_files();
        other.remove_files();
    }
    EXPECT_TRUE(std::filesystem::is_empty(directory_));
}

TEST_F(InstanceTest, WithoutANameTakesAFreeOne) {
    const Instance first = Instance::lock("");
    EXPECT_EQ(first.name(), default_instance_name);
    const Instance second = Instance::lock("");
    EXPECT_EQ(second.name(), "echelle-" + std::to_string(getpid()));
}

TEST_F(InstanceTest, TheLeftoversOfAKilledOwnerAreReplaced) {
    const pid_t child = fork();
    if (child == 0) {
        const Instance lost = Instance::lock("lost");
        FILE* socket = std::fopen((lost.directory() + "/tokens").c_str(), "w");
        _exit(socket == nullptr ? 1 : 0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    const Instance again = Instance::lock("lost");
    EXPECT_FALSE(std::filesystem::exists(again.directory() + "/tokens"));
}

TEST_F(InstanceTest, NamesAreChecked) {
    for (const char* name : {"../x", ".hidden", "a b", "x/y", ""}) {
        EXPECT_THROW(instance_directory(name), UsageError) << name;
    }
    EXPECT_THROW(instance_directory(std::string(65, 'a')), UsageError);
}

TEST_F(InstanceTest, ADirectoryThatIsTooLongForSocketsIsRefusedInWords) {
    const std::string deep = directory_ + "/" + std::string(90, 'd');
    std::filesystem::create_directory(deep);
    setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
    try {
        Instance::lock("name");
        FAIL() << "was accepted";
    } catch (const UsageError& error) {
        EXPECT_NE(std::string(error.what()).find("107"), std::string::npos);
    }
}

}  // namespace
}  // namespace echelle
