#include "common/curve_keys.hpp"

#include <array>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "common/error.hpp"
#include "common/file_descriptor.hpp"

namespace echelle {
namespace {

constexpr size_t text_bytes = 40;  // of a key in Z85
constexpr size_t key_bytes = 32;
constexpr size_t most_file_bytes = size_t{4} << 20;

struct Line {
    std::string kind;  // "public" or "secret"
    std::string key;
};

// The 32 bytes of a key, or nothing when the text is none.
std::optional<std::string> decoded(const std::string& text) {
    std::string bytes(key_bytes, '\0');
    if (text.size() != text_bytes ||
        zmq_z85_decode(reinterpret_cast<uint8_t*>(bytes.data()), text.c_str()) == nullptr) {
        return std::nullopt;
    }
    return bytes;
}

std::vector<Line> read_lines(const std::string& path) {
    std::ifstream file(path);
    struct stat status {};
    if (!file || stat(path.c_str(), &status) != 0) {
        throw UsageError("cannot read the keys in " + path + ": " + errno_text());
    }
    if (!S_ISREG(status.st_mode) || static_cast<size_t>(status.st_size) > most_file_bytes) {
        throw UsageError("cannot read the keys in " + path + ": not a file of keys");
    }
    std::vector<Line> lines;
    size_t number = 0;
    for (std::string text; std::getline(file, text);) {
        ++number;
        std::istringstream words(text);
        Line line;
        std::string more;
        // A comment is a line of its own: keys may hold a '#'.
        if (!(words >> line.kind) || line.kind.starts_with('#')) {
            continue;
        }
        if ((line.kind != "public" && line.kind != "secret") || !(words >> line.key) ||
            words >> more || !decoded(line.key)) {
            throw UsageError(path + ", line " + std::to_string(number) +
                             ": not \"public KEY\" or \"secret KEY\" with a key of 40 characters; "
                             "`echellectl keys` makes such files");
        }
        lines.push_back(line);
    }
    return lines;
}

void write_new_file(const std::string& path, const std::string& content, mode_t mode) {
    const FileDescriptor file(
        open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (!file ||
        write(file.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
        throw UsageError(
            "cannot write " + path + ": " + errno_text() +
            (errno == EEXIST ? "; keys are not replaced: remove it, or name others" : ""));
    }
}

}  // namespace

CurveKeys make_curve_keys() {
    std::array<char, text_bytes + 1> public_key{};
    std::array<char, text_bytes + 1> secret_key{};
    if (zmq_curve_keypair(public_key.data(), secret_key.data()) != 0) {
        throw RunError(std::string("cannot make keys: ") + zmq_strerror(errno) +
                       "; libzmq must be built with CURVE (libsodium), as Debian's is");
    }
    return {public_key.data(), secret_key.data()};
}

void write_curve_keys(const std::string& name, const CurveKeys& keys) {
    const std::string public_line = "public " + keys.public_key + "\n";
    write_new_file(name + ".key",
                   "# Secret: whoever has this file is who it stands for.\n" + public_line +
                       "secret " + keys.secret_key + "\n",
                   0600);
    write_new_file(name + ".pub", public_line, 0644);
}

CurveKeys read_secret_keys(const std::string& path) {
    CurveKeys keys;
    for (const Line& line : read_lines(path)) {
        (line.kind == "public" ? keys.public_key : keys.secret_key) = line.key;
    }
    if (keys.secret_key.empty() || keys.public_key.empty()) {
        throw UsageError(path +
                         " has no secret and public key: name a .key file of "
                         "`echellectl keys`");
    }
    struct stat status {};
    if (stat(path.c_str(), &status) == 0 && (status.st_mode & 077) != 0) {
        throw UsageError(path + " holds a secret that others may read: chmod 600 it");
    }
    return keys;
}

std::set<std::string> read_public_keys(const std::string& path) {
    std::set<std::string> keys;
    for (const Line& line : read_lines(path)) {
        if (line.kind == "secret") {
            throw UsageError(path + " holds a secret key: list public ones only");
        }
        keys.insert(decoded(line.key).value());
    }
    return keys;
}

}  // namespace echelle
