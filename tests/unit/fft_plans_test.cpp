#include "worker/fft_plans.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/error.hpp"
#include "worker/aligned_array.hpp"

namespace echelle {
namespace {

namespace fs = std::filesystem;

// Tests run on one thread; the environment is theirs.
void set_variable(const char* name, const std::string& value) {
    ASSERT_EQ(::setenv(name, value.c_str(), 1), 0);  // NOLINT(concurrency-mt-unsafe)
}

void unset_variable(const char* name) {
    ASSERT_EQ(::unsetenv(name), 0);  // NOLINT(concurrency-mt-unsafe)
}

class Variable {
  public:
    explicit Variable(const char* name) : name_(name) {
        const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
        was_set_ = value != nullptr;
        value_ = was_set_ ? value : "";
    }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;
    ~Variable() {
        if (was_set_) {
            set_variable(name_, value_);
        } else {
            unset_variable(name_);
        }
    }

  private:
    const char* name_;
    bool was_set_ = false;
    std::string value_;
};

// With an empty cache directory of its own.
class FftPlansTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string path = (fs::temp_directory_path() / "echelle-wisdom-XXXXXX").string();
        ASSERT_NE(::mkdtemp(path.data()), nullptr);
        cache_ = path;
        set_variable("XDG_CACHE_HOME", cache_.string());
    }
    void TearDown() override { fs::remove_all(cache_); }

    std::vector<fs::path> files() const {
        std::vector<fs::path> found;
        if (fs::exists(cache_ / "echelle")) {
            for (const auto& entry : fs::directory_iterator(cache_ / "echelle")) {
                found.push_back(entry.path());
            }
        }
        return found;
    }

    Variable cache_variable_{"XDG_CACHE_HOME"};
    Variable home_variable_{"HOME"};
    fs::path cache_;
};

std::vector<std::complex<double>> direct_dft(const std::vector<std::complex<double>>& x) {
    const size_t n = x.size();
    std::vector<std::complex<double>> result(n);
    for (size_t k = 0; k < n; ++k) {
        for (size_t i = 0; i < n; ++i) {
            const double turns = static_cast<double>(k * i % n) / static_cast<double>(n);
            result[k] += x[i] * std::polar(1.0, -2.0 * std::numbers::pi * turns);
        }
    }
    return result;
}

TEST_F(FftPlansTest, TransformsEqualTheDefinition) {
    std::mt19937 random(3);
    std::normal_distribution<float> noise;
    for (const uint32_t n : {1U, 2U, 3U, 4U, 7U, 16U, 60U, 97U, 128U, 255U, 256U}) {
        const FftPlans plans(n, false, true, FftEffort::estimate, FftKind::fftw);
        AlignedArray<std::complex<float>> in(n);
        AlignedArray<std::complex<float>> out(n);
        AlignedArray<float> real(n);
        std::vector<std::complex<double>> x(n);
        std::vector<std::complex<double>> real_x(n);
        for (uint32_t i = 0; i < n; ++i) {
            in[i] = {noise(random), noise(random)};
            x[i] = in[i];
            real[i] = noise(random);
            real_x[i] = double{real[i]};
        }
        plans.complex_transform(in.data(), out.data());
        const double allowed = 4e-6 * std::sqrt(static_cast<double>(n));
        const auto expected = direct_dft(x);
        for (uint32_t k = 0; k < n; ++k) {
            EXPECT_LT(std::abs(std::complex<double>(out[k]) - expected[k]), allowed);
            EXPECT_EQ(std::complex<double>(in[k]), x[k]) << "the input was written";
        }
        plans.real_transform(real.data(), out.data());
        const auto real_expected = direct_dft(real_x);
        for (uint32_t k = 0; k <= n / 2; ++k) {
            EXPECT_LT(std::abs(std::complex<double>(out[k]) - real_expected[k]), allowed);
        }
        for (uint32_t i = 0; i < n; ++i) {
            EXPECT_EQ(double{real[i]}, real_x[i].real()) << "the input was written";
        }
    }
}

TEST_F(FftPlansTest, WisdomIsWrittenOnceAndThenRead) {
    const FftPlans first(96, false, true, FftEffort::measure);
    EXPECT_EQ(first.wisdom(), WisdomUse::written);
    ASSERT_EQ(files().size(), 1U);
    const auto written = fs::last_write_time(files()[0]);
    const FftPlans second(96, false, true, FftEffort::measure);
    EXPECT_EQ(second.wisdom(), WisdomUse::read);
    EXPECT_EQ(second.description(), first.description());
    ASSERT_EQ(files().size(), 1U);
    EXPECT_EQ(fs::last_write_time(files()[0]), written);
}

TEST_F(FftPlansTest, EachSizeEffortAndKindHasItsFile) {
    EXPECT_EQ(FftPlans(32, false, true, FftEffort::measure).wisdom(), WisdomUse::written);
    EXPECT_EQ(FftPlans(64, false, true, FftEffort::measure, FftKind::fftw).wisdom(),
              WisdomUse::written);
    EXPECT_EQ(FftPlans(64, false, true, FftEffort::patient, FftKind::fftw).wisdom(),
              WisdomUse::written);
    EXPECT_EQ(FftPlans(64, false, false, FftEffort::measure, FftKind::fftw).wisdom(),
              WisdomUse::written);
    EXPECT_EQ(FftPlans(64, true, true, FftEffort::measure, FftKind::fftw).wisdom(),
              WisdomUse::written);
    EXPECT_EQ(files().size(), 5U);
    EXPECT_EQ(FftPlans(32, false, true, FftEffort::measure).wisdom(), WisdomUse::read);
}

TEST_F(FftPlansTest, BrokenWisdomIsIgnoredAndReplaced) {
    ASSERT_EQ(FftPlans(48, true, true, FftEffort::measure).wisdom(), WisdomUse::written);
    const fs::path file = files().at(0);
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    const std::string good = text.str();
    for (const std::string& bad :
         {std::string(), std::string("not wisdom"), good.substr(0, good.size() / 2),
          std::string(100, '\0'), "(" + good, std::string(2U << 20, '(')}) {
        std::ofstream(file, std::ios::trunc) << bad;
        EXPECT_EQ(FftPlans(48, true, true, FftEffort::measure).wisdom(), WisdomUse::written);
        EXPECT_EQ(FftPlans(48, true, true, FftEffort::measure).wisdom(), WisdomUse::read);
    }
}

TEST_F(FftPlansTest, PlansWithoutAnyPlaceForWisdom) {
    unset_variable("XDG_CACHE_HOME");
    unset_variable("HOME");
    EXPECT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::none);
    // A relative path is to be ignored (XDG base directory specification).
    set_variable("XDG_CACHE_HOME", "relative");
    EXPECT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::none);
    // A directory that cannot be made, even by root: its parent is a file.
    std::ofstream(cache_ / "file") << "x";
    set_variable("XDG_CACHE_HOME", (cache_ / "file").string());
    EXPECT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::none);
    EXPECT_TRUE(files().empty());
}

TEST_F(FftPlansTest, HomeIsUsedWithoutXdg) {
    unset_variable("XDG_CACHE_HOME");
    set_variable("HOME", cache_.string());
    EXPECT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::written);
    EXPECT_TRUE(fs::exists(cache_ / ".cache" / "echelle"));
}

TEST_F(FftPlansTest, ADirectoryInTheFilesPlaceDoesNoHarm) {
    ASSERT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::written);
    const fs::path file = files().at(0);
    fs::remove(file);
    fs::create_directories(file / "inside");
    EXPECT_EQ(FftPlans(16, true, true, FftEffort::measure).wisdom(), WisdomUse::none);
    EXPECT_EQ(files().size(), 1U) << "a temporary file was left";
}

TEST_F(FftPlansTest, EstimateIsDeterministicAndKeepsNoWisdom) {
    const std::string before =
        FftPlans(1024, false, true, FftEffort::estimate, FftKind::fftw).description();
    const FftPlans measured(1024, false, true, FftEffort::measure, FftKind::fftw);
    const FftPlans after(1024, false, true, FftEffort::estimate, FftKind::fftw);
    EXPECT_EQ(after.description(), before);
    EXPECT_EQ(after.wisdom(), WisdomUse::none);
    EXPECT_EQ(files().size(), 1U);  // of the measured plans
}

TEST_F(FftPlansTest, SeveralProcessesWriteAtOnce) {
    constexpr int kProcesses = 6;
    ASSERT_EQ(FftPlans(24, true, true, FftEffort::measure).wisdom(), WisdomUse::written);
    const fs::path wisdom = files().at(0);
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
        const pid_t child = ::fork();
        ASSERT_GE(child, 0);
        if (child == 0) {
            // Each round begins without wisdom: all of them write.
            bool good = true;
            for (int round = 0; round < 20; ++round) {
                std::error_code error;
                fs::remove(wisdom, error);
                good = good &&
                       FftPlans(24, true, true, FftEffort::measure).wisdom() != WisdomUse::none;
            }
            ::_exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        ASSERT_EQ(::waitpid(child, &status, 0), child);
        EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    EXPECT_EQ(files(), std::vector<fs::path>{wisdom})
        << "something other than whole wisdom is left";
    EXPECT_EQ(FftPlans(24, true, true, FftEffort::measure).wisdom(), WisdomUse::read);
}

TEST_F(FftPlansTest, TheSplitTransformNeedsNoWisdom) {
    if (kernels::split_lanes() == 0) {
        GTEST_SKIP() << "this CPU has no split kernels";
    }
    const FftPlans complex(256, true, true, FftEffort::measure, FftKind::own);
    EXPECT_EQ(complex.wisdom(), WisdomUse::none);
    EXPECT_TRUE(files().empty());
    EXPECT_NE(complex.description().find("radix 4 x 4 x 4 x 4"), std::string::npos);
    // A real channel alone is FFTW's all the same, and shares its wisdom with channels not paired.
    EXPECT_EQ(FftPlans(256, false, true, FftEffort::measure, FftKind::own).wisdom(),
              WisdomUse::written);
    EXPECT_EQ(FftPlans(256, false, false, FftEffort::measure).wisdom(), WisdomUse::read);
    for (const uint32_t nperseg : {32U, 96U, 1000U, 8192U}) {
        EXPECT_EQ(FftPlans(nperseg, true, true, FftEffort::estimate, FftKind::own).split(), nullptr)
            << nperseg;
    }
}

TEST_F(FftPlansTest, MovedPlansStillTransform) {
    FftPlans first(8, true, true, FftEffort::estimate);
    const FftPlans plans(std::move(first));
    AlignedArray<std::complex<float>> in(8);
    AlignedArray<std::complex<float>> out(8);
    std::fill_n(in.data(), 8, std::complex<float>(1.0F, 0.0F));
    plans.complex_transform(in.data(), out.data());
    EXPECT_EQ(out[0], std::complex<float>(8.0F, 0.0F));
}

TEST_F(FftPlansTest, TimeLimitIsKept) {
    // Without a limit PATIENT searches for a minute and more.
    const auto start = std::chrono::steady_clock::now();
    const FftPlans plans(65536, true, true, FftEffort::patient, FftKind::fftw, 0.2);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    EXPECT_LT(spent.count(), 5.0);
    EXPECT_EQ(plans.nperseg(), 65536U);
}

TEST(FftKind, NamesAreReadBack) {
    for (const FftKind kind : {FftKind::automatic, FftKind::own, FftKind::fftw}) {
        EXPECT_EQ(parse_fft_kind(name_of(kind)), kind);
    }
    EXPECT_THROW(parse_fft_kind("kiss"), UsageError);
}

TEST(FftEffort, NamesAreReadBack) {
    for (const FftEffort effort : {FftEffort::estimate, FftEffort::measure, FftEffort::patient}) {
        EXPECT_EQ(parse_fft_effort(name_of(effort)), effort);
    }
    EXPECT_EQ(name_of(FftEffort::patient), "patient");
    EXPECT_THROW(parse_fft_effort("exhaustive"), UsageError);
    EXPECT_EQ(name_of(WisdomUse::none), "none");
    EXPECT_EQ(name_of(WisdomUse::read), "read");
    EXPECT_EQ(name_of(WisdomUse::written), "written");
}

}  // namespace
}  // namespace echelle
