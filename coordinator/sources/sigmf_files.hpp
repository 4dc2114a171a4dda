// Where the files of a SigMF recording are: in a folder, in an archive, named by a collection.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/sources/sample_file.hpp"
#include "coordinator/sources/tar_members.hpp"

namespace echelle {

// A file, or a member of an archive: these bytes of that file.
struct FileRange {
    RegularFile file;
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::string name;  // for messages
};

// Finds files by their paths: as they are, or, in an archive, those of its members.
class SigmfFiles {
  public:
    // `path` names a metadata, data, collection or archive file, or a recording without ending;
    // `wanted` one recording of several. Throws UsageError, listing them, when that is not one.
    // With `verify`, the metadata must have the hash that a collection says.
    SigmfFiles(const std::string& path, const std::optional<std::string>& wanted, bool verify);

    FileRange metadata() const { return open(base_ + ".sigmf-meta"); }
    // The data file: beside the metadata, of that name if the metadata give one.
    FileRange data(const std::optional<std::string>& dataset) const;

  private:
    FileRange open(const std::string& path) const;
    void choose_member(const std::string& path, const std::optional<std::string>& wanted);
    void choose_stream(const std::string& path, const std::optional<std::string>& wanted,
                       bool verify);

    std::optional<std::string> archive_;
    std::vector<TarMember> members_;
    std::string base_;  // path of the recording without ending
};

// All bytes of a range, which must be at most `most`; one more when there are more.
std::string bytes_of_range(const FileRange& range, uint64_t most);

}  // namespace echelle
