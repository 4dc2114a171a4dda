#include "coordinator/capture/capture_options.hpp"

#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/error.hpp"
#include "common/file_descriptor.hpp"
#include "common/rational.hpp"
#include "common/source_uri.hpp"

namespace echelle {
namespace {

[[noreturn]] void refuse(const std::string& why) {
    throw UsageError("--capture " + why);
}

// "500000000", "500M", "2G": bytes, by powers of ten.
uint64_t bytes_of(const std::string& text) {
    std::string number = text;
    uint64_t unit = 1;
    for (const auto& [suffix, size] : {std::pair{'k', 1'000ULL}, std::pair{'M', 1'000'000ULL},
                                       std::pair{'G', 1'000'000'000ULL}}) {
        if (number.ends_with(suffix)) {
            number.pop_back();
            unit = size;
            break;
        }
    }
    constexpr double most = 1e18;
    try {
        const double bytes = Rational::parse(number, "size").value() * static_cast<double>(unit);
        if (bytes >= 1 && bytes <= most) {
            return static_cast<uint64_t>(bytes);
        }
    } catch (const UsageError&) {
        // Told below, with the whole value.
    }
    refuse("size=" + text + " is not possible: give bytes like 500M or 2G");
}

std::optional<double> seconds_of(const std::optional<double>& seconds) {
    if (seconds && *seconds <= 0) {
        refuse("seconds=" + std::to_string(*seconds) + " is not possible: give more than 0");
    }
    return seconds;
}

bool choose(SourceUri& uri, const std::string& key, const std::string& yes, const std::string& no) {
    const std::string value = uri.take(key).value_or(yes);
    if (value != yes && value != no) {
        refuse(key + "=" + value + " is not known: give " + yes + " or " + no);
    }
    return value == yes;
}

}  // namespace

CaptureOptions CaptureOptions::parse(const std::string& text) {
    CaptureOptions options;
    try {
        SourceUri uri = SourceUri::parse("capture:" + text);
        options.directory = uri.path();
        while (options.directory.size() > 1 && options.directory.ends_with('/')) {
            options.directory.pop_back();
        }
        if (const auto size = uri.take("size")) {
            options.most_file_bytes = bytes_of(*size);
        }
        options.most_file_seconds = seconds_of(uri.take_number("seconds"));
        options.at_once = choose(uri, "start", "now", "later");
        options.with_sha512 = choose(uri, "sha512", "yes", "no");
        uri.refuse_unknown_keys();
    } catch (const UsageError& error) {
        const std::string why = error.what();
        if (why.starts_with("--capture")) {
            throw;
        }
        refuse("'" + text + "' cannot be used: " + why);
    }
    if (options.directory.empty()) {
        refuse("names no directory: write it like --capture captures?size=1G");
    }
    return options;
}

void make_capture_directory(const std::string& directory) {
    struct stat status {};
    if (stat(directory.c_str(), &status) == 0 && !S_ISDIR(status.st_mode)) {
        refuse("'" + directory + "' is not a directory: name one, or a new one");
    }
    if (mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) {
        refuse("'" + directory + "' cannot be made: " + errno_text() + "; check the path");
    }
    const std::string probe = directory + "/.part-" + std::to_string(getpid());
    const FileDescriptor file(open(probe.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    if (!file) {
        refuse("cannot write into '" + directory + "': " + errno_text() +
               "; name a directory that you can write");
    }
    unlink(probe.c_str());
}

}  // namespace echelle
