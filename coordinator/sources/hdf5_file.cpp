#include "coordinator/sources/hdf5_file.hpp"

#include <array>
#include <limits>
#include <mutex>
#include <optional>

#include "common/error.hpp"

namespace echelle {
namespace {

// HDF5 prints each failure on standard error unless told not to.
void keep_quiet() {
    static std::once_flag once;
    std::call_once(once, [] { H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr); });
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
    throw UsageError("'" + path + "' " + why);
}

// Bytes of a signed integer that int16 holds exactly; absent for every other type.
std::optional<size_t> integer_bytes(hid_t type) {
    if (H5Tget_class(type) != H5T_INTEGER || H5Tget_sign(type) != H5T_SGN_2) {
        return std::nullopt;
    }
    const size_t bytes = H5Tget_size(type);
    return bytes <= sizeof(int16_t) ? std::optional(bytes) : std::nullopt;
}

Hdf5Handle member_type(hid_t type, const char* name) {
    const int index = H5Tget_member_index(type, name);
    return Hdf5Handle(index < 0 ? hid_t{H5I_INVALID_HID}
                                : H5Tget_member_type(type, static_cast<unsigned>(index)));
}

void read_type(Hdf5Samples& samples, const std::string& path) {
    const Hdf5Handle type(H5Dget_type(samples.data.get()));
    std::optional<size_t> bytes;
    if (H5Tget_class(type.get()) == H5T_COMPOUND && H5Tget_nmembers(type.get()) == 2) {
        const Hdf5Handle real = member_type(type.get(), "r");
        const Hdf5Handle imaginary = member_type(type.get(), "i");
        samples.is_complex = true;
        bytes = real && imaginary ? integer_bytes(real.get()) : std::nullopt;
        if (bytes && integer_bytes(imaginary.get()) != bytes) {
            bytes.reset();
        }
    } else {
        bytes = integer_bytes(type.get());
    }
    if (!bytes) {
        refuse(path,
               "holds other samples than signed integers of 8 or 16 bits, or pairs {r, i} of them: "
               "convert them to int16");
    }
    samples.coding = *bytes == 1 ? ValueCoding::int8 : ValueCoding::int16_little;
}

void read_shape(Hdf5Samples& samples, const std::string& path) {
    const Hdf5Handle space(H5Dget_space(samples.data.get()));
    std::array<hsize_t, 2> shape = {0, 1};
    const int dimensions = H5Sget_simple_extent_ndims(space.get());
    if (dimensions < 1 || dimensions > 2 ||
        H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr) != dimensions) {
        refuse(path, "holds samples in " + std::to_string(dimensions) +
                         " dimensions: expected rows of channels");
    }
    constexpr hsize_t most_columns = 65'536;
    if (shape[1] < 1 || shape[1] > most_columns) {
        refuse(path, "holds " + std::to_string(shape[1]) + " channels: expected 1 to 65536");
    }
    samples.rows = shape[0];
    samples.channels = static_cast<uint32_t>(shape[1]);
    // Rows that were never written take no room: deflate shortens to 1/1032 at most.
    constexpr hsize_t most_ratio = 1100;
    const hsize_t stored = H5Dget_storage_size(samples.data.get());
    if (samples.rows / most_ratio > stored) {
        refuse(path, "says that it has " + std::to_string(samples.rows) +
                         " rows, but stores only " + std::to_string(stored) +
                         " bytes of them: it is damaged");
    }
}

}  // namespace

Hdf5Handle open_hdf5(const std::string& path) {
    keep_quiet();
    const RegularFile plain(path);  // names a missing file and one without permission
    const Hdf5Handle access(H5Pcreate(H5P_FILE_ACCESS));
    H5Pset_file_locking(access.get(), false, true);
    Hdf5Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()));
    if (!file) {
        refuse(path, "is no whole HDF5 file of " + std::to_string(plain.size()) +
                         " bytes: was it still written to? Move it out of the recording");
    }
    return file;
}

uint64_t hdf5_attribute(const Hdf5Handle& file, const std::string& name, const std::string& path) {
    const Hdf5Handle attribute(H5Aexists(file.get(), name.c_str()) > 0
                                   ? H5Aopen(file.get(), name.c_str(), H5P_DEFAULT)
                                   : hid_t{H5I_INVALID_HID});
    if (attribute) {
        const Hdf5Handle type(H5Aget_type(attribute.get()));
        const Hdf5Handle space(H5Aget_space(attribute.get()));
        uint64_t value = 0;
        if (H5Tget_class(type.get()) == H5T_INTEGER &&
            H5Sget_simple_extent_npoints(space.get()) == 1 &&
            H5Aread(attribute.get(), H5T_NATIVE_UINT64, &value) >= 0) {
            return value;
        }
    }
    refuse(path, "lacks the attribute " + name + " as a whole number: is it of Digital RF 2?");
}

Hdf5Samples open_hdf5_samples(const std::string& path, const std::string& name) {
    Hdf5Samples samples;
    samples.file = open_hdf5(path);
    samples.data = Hdf5Handle(H5Dopen2(samples.file.get(), name.c_str(), H5P_DEFAULT));
    if (!samples.data) {
        refuse(path, "has no data set " + name + ": it is damaged, or no recording");
    }
    read_type(samples, path);
    read_shape(samples, path);
    return samples;
}

Hdf5Store::Hdf5Store(std::vector<std::string> paths, std::string name,
                     const FrameGeometry& geometry)
    : paths_(std::move(paths)), name_(std::move(name)), geometry_(geometry) {
    if (geometry.is_complex()) {
        value_type_ = Hdf5Handle(H5Tcreate(H5T_COMPOUND, 2 * sizeof(int16_t)));
        H5Tinsert(value_type_.get(), "r", 0, H5T_NATIVE_INT16);
        H5Tinsert(value_type_.get(), "i", sizeof(int16_t), H5T_NATIVE_INT16);
    } else {
        value_type_ = Hdf5Handle(H5Tcopy(H5T_NATIVE_INT16));
    }
}

void Hdf5Store::open(uint32_t index) {
    if (samples_.data && open_index_ == index) {
        return;
    }
    samples_ = Hdf5Samples{};
    try {
        samples_ = open_hdf5_samples(paths_[index], name_);
    } catch (const UsageError& error) {
        throw RunError(error.what());  // it was well when the recording was opened
    }
    open_index_ = index;
}

void Hdf5Store::read(const SamplePiece& piece, uint64_t first, uint32_t count, uint32_t filled,
                     std::span<int16_t> frame) {
    open(piece.file);
    const size_t row_values = size_t{geometry_.channels} * geometry_.values_per_sample();
    const std::array<hsize_t, 2> start = {piece.offset + first, 0};
    const std::array<hsize_t, 2> size = {count, geometry_.channels};
    const Hdf5Handle rows(H5Dget_space(samples_.data.get()));
    const int dimensions = H5Sget_simple_extent_ndims(rows.get());
    const Hdf5Handle memory(H5Screate_simple(dimensions, size.data(), nullptr));
    int16_t* to = frame.subspan(filled * row_values, count * row_values).data();
    if (samples_.channels != geometry_.channels ||
        H5Sselect_hyperslab(rows.get(), H5S_SELECT_SET, start.data(), nullptr, size.data(),
                            nullptr) < 0 ||
        H5Dread(samples_.data.get(), value_type_.get(), memory.get(), rows.get(), H5P_DEFAULT, to) <
            0) {
        throw RunError("'" + paths_[piece.file] + "': rows " + std::to_string(start[0]) + " to " +
                       std::to_string(start[0] + count - 1) + " of " + name_ +
                       " cannot be read: it is damaged, or it changed while it was read");
    }
}

}  // namespace echelle
