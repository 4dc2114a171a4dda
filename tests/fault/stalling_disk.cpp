// stalling_disk FOLDER BACKING: a disk as a file system in FUSE: what is written into FOLDER lies
// in BACKING. Stopped (SIGSTOP) it is a disk that hangs: whoever writes waits in the kernel until
// it goes on or is ended. Just what a capture needs of a file system.
#define FUSE_USE_VERSION 31

#include <cerrno>
#include <cstdio>
#include <string>

#include <dirent.h>
#include <fcntl.h>
#include <fuse3/fuse.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

std::string backing;

std::string below(const char* path) {
    return backing + path;
}

int outcome(int result) {
    return result < 0 ? -errno : result;
}

int get_attributes(const char* path, struct stat* status, fuse_file_info*) {
    return outcome(lstat(below(path).c_str(), status));
}

int read_folder(const char* path, void* names, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                fuse_readdir_flags) {
    DIR* const folder = opendir(below(path).c_str());
    if (folder == nullptr) {
        return -errno;
    }
    while (const dirent* const entry = readdir(folder)) {  // NOLINT(concurrency-mt-unsafe)
        fill(names, entry->d_name, nullptr, 0, fuse_fill_dir_flags{});
    }
    closedir(folder);
    return 0;
}

int make_folder(const char* path, mode_t mode) {
    return outcome(mkdir(below(path).c_str(), mode));
}

int make_file(const char* path, mode_t mode, fuse_file_info* file) {
    const int fd = open(below(path).c_str(), file->flags | O_CREAT, mode);
    file->fh = static_cast<uint64_t>(fd);
    return fd < 0 ? -errno : 0;
}

int open_file(const char* path, fuse_file_info* file) {
    const int fd = open(below(path).c_str(), file->flags & ~O_CREAT);
    file->fh = static_cast<uint64_t>(fd);
    return fd < 0 ? -errno : 0;
}

int read_file(const char*, char* bytes, size_t size, off_t offset, fuse_file_info* file) {
    return outcome(static_cast<int>(pread(static_cast<int>(file->fh), bytes, size, offset)));
}

int write_file(const char*, const char* bytes, size_t size, off_t offset, fuse_file_info* file) {
    return outcome(static_cast<int>(pwrite(static_cast<int>(file->fh), bytes, size, offset)));
}

int release_file(const char*, fuse_file_info* file) {
    return outcome(close(static_cast<int>(file->fh)));
}

int cut(const char* path, off_t size, fuse_file_info*) {
    return outcome(truncate(below(path).c_str(), size));
}

int rename_file(const char* from, const char* to, unsigned int) {
    return outcome(rename(below(from).c_str(), below(to).c_str()));
}

int remove_file(const char* path) {
    return outcome(unlink(below(path).c_str()));
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) {
        std::fprintf(stderr, "usage: stalling_disk FOLDER BACKING\n");
        return 2;
    }
    backing = argv[2];
    fuse_operations operations{};
    operations.getattr = get_attributes;
    operations.readdir = read_folder;
    operations.mkdir = make_folder;
    operations.create = make_file;
    operations.open = open_file;
    operations.read = read_file;
    operations.write = write_file;
    operations.release = release_file;
    operations.truncate = cut;
    operations.rename = rename_file;
    operations.unlink = remove_file;
    std::string foreground = "-f";
    char* arguments[] = {argv[0], argv[1], foreground.data()};
    return fuse_main(3, arguments, &operations, nullptr);
}
