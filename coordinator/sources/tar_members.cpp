#include "coordinator/sources/tar_members.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include <archive.h>
#include <archive_entry.h>

#include "common/error.hpp"
#include "coordinator/sources/recording_files.hpp"

namespace echelle {
namespace {

struct Close {
    void operator()(archive* reader) const { archive_read_free(reader); }
};
using Reader = std::unique_ptr<archive, Close>;

[[noreturn]] void refuse(const RegularFile& file, const std::string& why) {
    throw UsageError("'" + file.path() + "' " + why);
}

Reader open_archive(const RegularFile& file) {
    Reader reader(archive_read_new());
    archive_read_support_filter_all(reader.get());
    archive_read_support_format_tar(reader.get());
    constexpr size_t block_bytes = 65'536;
    if (archive_read_open_filename(reader.get(), file.path().c_str(), block_bytes) != ARCHIVE_OK) {
        refuse(file,
               "is no tar archive, which a SigMF archive has to be: unpack it by other means "
               "and name the .sigmf-meta file");
    }
    if (archive_filter_code(reader.get(), 0) != ARCHIVE_FILTER_NONE) {
        refuse(file,
               "is compressed, so its samples can't be read in place: unpack it with tar -xf "
               "and name the .sigmf-meta file");
    }
    return reader;
}

// libarchive says where it stands; that the member's first bytes are there is checked.
void check_place(archive* reader, const RegularFile& file, const TarMember& member) {
    std::array<char, 4096> seen{};
    const la_ssize_t got = archive_read_data(reader, seen.data(), seen.size());
    const auto expected = std::min<uint64_t>(seen.size(), member.bytes);
    const std::string there = bytes_of_file(file, member.offset, expected);
    if (got < 0 || static_cast<uint64_t>(got) != expected || there.size() != expected ||
        !std::equal(there.begin(), there.end(), seen.begin())) {
        refuse(file, "holds '" + member.name + "' of " + std::to_string(member.bytes) +
                         " bytes, which isn't whole: fetch the whole archive, or unpack what is "
                         "there with tar -xf");
    }
}

}  // namespace

std::vector<TarMember> list_tar_members(const RegularFile& file) {
    constexpr size_t most_members = 100'000;
    const Reader reader = open_archive(file);
    std::vector<TarMember> members;
    archive_entry* entry = nullptr;
    for (;;) {
        const int result = archive_read_next_header(reader.get(), &entry);
        if (result == ARCHIVE_EOF) {
            return members;
        }
        if (result != ARCHIVE_OK && result != ARCHIVE_WARN) {
            refuse(file, "is a damaged tar archive behind its " + std::to_string(members.size()) +
                             " files: fetch the whole archive");
        }
        const char* name = archive_entry_pathname(entry);
        if (archive_entry_filetype(entry) != AE_IFREG || name == nullptr) {
            continue;
        }
        TarMember member;
        member.name = name;
        member.offset = static_cast<uint64_t>(archive_filter_bytes(reader.get(), 0));
        member.bytes = static_cast<uint64_t>(std::max<int64_t>(archive_entry_size(entry), 0));
        if (members.size() >= most_members || archive_entry_sparse_count(entry) > 0) {
            refuse(file,
                   "has sparse files or more than 100,000: unpack it with tar -xf and name "
                   "the .sigmf-meta file");
        }
        check_place(reader.get(), file, member);
        if (member.offset > file.size() || file.size() - member.offset < member.bytes) {
            refuse(file, "ends before the " + std::to_string(member.bytes) + " bytes of '" +
                             member.name + "' do: fetch the whole archive");
        }
        members.push_back(std::move(member));
    }
}

bool looks_like_tar(std::string_view bytes) {
    constexpr size_t magic_at = 257;  // POSIX ustar, and GNU's variant of it
    return bytes.size() > magic_at && bytes.substr(magic_at).starts_with("ustar");
}

}  // namespace echelle
