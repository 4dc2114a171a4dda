#include "coordinator/sources/sigmf_files.hpp"

#include <algorithm>
#include <utility>

#include <sys/stat.h>

#include "common/error.hpp"
#include "coordinator/sources/recording_files.hpp"
#include "coordinator/sources/sha512.hpp"
#include "coordinator/sources/sigmf_collection.hpp"

namespace echelle {
namespace {

constexpr std::string_view metadata_ending = ".sigmf-meta";
constexpr std::string_view data_ending = ".sigmf-data";
constexpr std::string_view collection_ending = ".sigmf-collection";

std::string without_ending(std::string path, std::string_view ending) {
    if (path.ends_with(ending)) {
        path.resize(path.size() - ending.size());
    }
    return path;
}

std::string folder_of(const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

bool is_archive(const std::string& path) {
    struct stat status {};
    if (path.ends_with(metadata_ending) || stat(path.c_str(), &status) != 0 ||
        !S_ISREG(status.st_mode)) {
        return path.ends_with(".sigmf");
    }
    constexpr size_t tar_header_bytes = 512;
    return path.ends_with(".sigmf") ||
           (!path.ends_with(data_ending) &&
            looks_like_tar(bytes_of_file(RegularFile(path), 0, tar_header_bytes)));
}

// The one name that is wanted, or the only one there is.
const std::string& choose(const std::vector<std::string>& names,
                          const std::optional<std::string>& wanted, const std::string& path,
                          const char* kind) {
    const auto found =
        wanted ? std::find(names.begin(), names.end(), without_ending(*wanted, metadata_ending))
        : names.size() == 1 ? names.begin()
                            : names.end();
    if (found != names.end()) {
        return *found;
    }
    constexpr size_t most_listed = 20;
    std::string listed;
    for (size_t i = 0; i < std::min(names.size(), most_listed); ++i) {
        listed += (i == 0 ? "" : ", ") + names[i];
    }
    if (names.size() > most_listed) {
        listed += ", and " + std::to_string(names.size() - most_listed) + " more";
    }
    throw UsageError("'" + path + "' is a SigMF " + kind + " of " +
                     (names.empty() ? "no recordings: name another file"
                                    : listed + ": choose one with the key recording="));
}

}  // namespace

SigmfFiles::SigmfFiles(const std::string& path, const std::optional<std::string>& wanted,
                       bool verify) {
    if (is_archive(path)) {
        choose_member(path, wanted);
    } else if (path.ends_with(collection_ending)) {
        choose_stream(path, wanted, verify);
    } else if (wanted) {
        throw UsageError("'" + path +
                         "' is one recording, no archive or collection: leave recording= out");
    } else {
        base_ = without_ending(without_ending(path, metadata_ending), data_ending);
    }
}

void SigmfFiles::choose_member(const std::string& path, const std::optional<std::string>& wanted) {
    const RegularFile archive(path);
    members_ = list_tar_members(archive);
    std::vector<std::string> names;
    for (const TarMember& member : members_) {
        if (member.name.ends_with(metadata_ending)) {
            names.push_back(without_ending(member.name, metadata_ending));
        }
    }
    // By the whole path in the archive, or by its last part where that is enough.
    std::vector<std::string> short_names;
    for (const std::string& name : names) {
        short_names.push_back(name.substr(folder_of(name).size()));
    }
    const bool by_path = wanted && wanted->find('/') != std::string::npos;
    const std::string& chosen = choose(by_path ? names : short_names, wanted, path, "archive");
    const auto& among = by_path ? names : short_names;
    base_ =
        names[static_cast<size_t>(std::find(among.begin(), among.end(), chosen) - among.begin())];
    archive_ = path;
}

void SigmfFiles::choose_stream(const std::string& path, const std::optional<std::string>& wanted,
                               bool verify) {
    constexpr size_t most_bytes = (size_t{1} << 20) + 1;  // one more than is taken
    const std::vector<SigmfStream> streams =
        parse_sigmf_collection(bytes_of_file(RegularFile(path), 0, most_bytes), path);
    std::vector<std::string> names;
    for (const SigmfStream& stream : streams) {
        names.push_back(stream.name);
    }
    const std::string& chosen = choose(names, wanted, path, "collection");
    base_ = folder_of(path) + chosen;
    const auto index = static_cast<size_t>(&chosen - names.data());
    if (!verify || !streams[index].hash) {
        return;
    }
    const FileRange file = metadata();
    const std::string digest = sha512_of(file.file, file.offset, file.bytes);
    if (digest != *streams[index].hash) {
        throw UsageError("'" + file.name + "' has the SHA-512 " + digest + ", but '" + path +
                         "' says " + *streams[index].hash +
                         ": one of them was changed; fetch both again");
    }
}

FileRange SigmfFiles::data(const std::optional<std::string>& dataset) const {
    return open(dataset ? folder_of(base_) + *dataset : base_ + std::string(data_ending));
}

FileRange SigmfFiles::open(const std::string& path) const {
    if (!archive_) {
        RegularFile file(path);
        const uint64_t bytes = file.size();
        return {std::move(file), 0, bytes, path};
    }
    for (const TarMember& member : members_) {
        if (member.name == path) {
            return {RegularFile(*archive_), member.offset, member.bytes, *archive_ + ":" + path};
        }
    }
    throw UsageError("'" + *archive_ + "' holds no '" + path +
                     "': make the archive again, with both files of the recording");
}

std::string bytes_of_range(const FileRange& range, uint64_t most) {
    return bytes_of_file(range.file, range.offset,
                         static_cast<size_t>(std::min(range.bytes, most + 1)));
}

}  // namespace echelle
