#include "coordinator/sources/sound_file.hpp"

#include <algorithm>

#include "common/error.hpp"

namespace echelle {
namespace {

std::string format_name(int command, int format) {
    SF_FORMAT_INFO info{};
    info.format = format;
    if (sf_command(nullptr, command, &info, sizeof info) != 0 || info.name == nullptr) {
        return "unknown";
    }
    return info.name;
}

}  // namespace

SoundFile::SoundFile(const std::string& path) : path_(path) {
    file_.reset(sf_open(path.c_str(), SFM_READ, &info_));
    if (file_ == nullptr) {
        std::string why = sf_strerror(nullptr);
        std::replace(why.begin(), why.end(), '\n', ' ');
        throw UsageError("'" + path + "' cannot be read as a sound file: " + why +
                         "; convert it to WAV, or read its samples with raw: and offset=");
    }
    if (info_.channels < 1 || info_.frames < 0) {
        throw UsageError("'" + path + "' says that it has " + std::to_string(info_.channels) +
                         " channels and " + std::to_string(info_.frames) +
                         " frames: its header is damaged");
    }
}

std::string SoundFile::type_name() const {
    return format_name(SFC_GET_FORMAT_INFO, info_.format & SF_FORMAT_TYPEMASK);
}

std::string SoundFile::encoding_name() const {
    return format_name(SFC_GET_FORMAT_INFO, encoding());
}

void SoundFile::read(uint64_t first_frame, std::span<int16_t> values) {
    if (first_frame != next_frame_) {
        if (sf_seek(file_.get(), static_cast<sf_count_t>(first_frame), SEEK_SET) < 0) {
            throw RunError("'" + path_ + "' cannot be read at sample " +
                           std::to_string(first_frame) + ": " + sf_strerror(file_.get()));
        }
        next_frame_ = first_frame;
    }
    const auto wanted = static_cast<sf_count_t>(values.size() / channels());
    const sf_count_t got = sf_readf_short(file_.get(), values.data(), wanted);
    if (got < wanted) {
        throw RunError(
            "'" + path_ + "' ends at sample " +
            std::to_string(first_frame + static_cast<uint64_t>(std::max<sf_count_t>(got, 0))) +
            ", but had " + std::to_string(frames()) +
            " when it was opened: it is damaged, or it shrank; check it and start again");
    }
    next_frame_ += static_cast<uint64_t>(wanted);
}

void SoundStore::read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
                      std::span<int16_t> frame) {
    const uint32_t channels = file_.channels();
    const auto values = frame.subspan(size_t{filled} * channels, size_t{count} * channels);
    file_.read(piece.offset + first, values);
    if (is_8_bit_) {
        // libsndfile scales 8-bit values by 256; here they keep their own.
        std::transform(values.begin(), values.end(), values.begin(),
                       [](int16_t value) { return static_cast<int16_t>(value >> 8); });
    }
}

}  // namespace echelle
