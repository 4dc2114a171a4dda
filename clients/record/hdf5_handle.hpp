// Owns one identifier of the HDF5 library, and says in one line why the library refused something.
// Used by one thread at a time.
#pragma once

#include <string>
#include <utility>

#include <hdf5.h>

namespace echelle::record {

class Hdf5Handle {
  public:
    Hdf5Handle() = default;
    explicit Hdf5Handle(hid_t id) : id_(id) {}
    Hdf5Handle(Hdf5Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
    Hdf5Handle& operator=(Hdf5Handle&& other) noexcept {
        if (this != &other) {
            close();
            id_ = std::exchange(other.id_, H5I_INVALID_HID);
        }
        return *this;
    }
    Hdf5Handle(const Hdf5Handle&) = delete;
    Hdf5Handle& operator=(const Hdf5Handle&) = delete;
    ~Hdf5Handle() { close(); }

    hid_t get() const { return id_; }
    explicit operator bool() const { return id_ >= 0; }
    // False when something could not be written any more.
    bool close() { return id_ < 0 || H5Idec_ref(std::exchange(id_, H5I_INVALID_HID)) >= 0; }
    // Leaves it open for ever: after a failed write the library must not touch the file again.
    void abandon() { id_ = H5I_INVALID_HID; }

  private:
    hid_t id_ = H5I_INVALID_HID;
};

// The library prints each failure on standard error, for each thread, unless told not to. To be
// called by every thread that uses it.
void quiet_hdf5();
// And it closes what is open when the process ends, also what was abandoned. To be called before
// anything else of it.
void leave_hdf5_open_at_exit();

// Why the last call failed: the innermost message of the library's stack.
std::string hdf5_cause();

// Throws RunError "cannot WHAT PATH: cause" when `status` is negative; gives it back otherwise.
hid_t need(hid_t status, const char* what, const std::string& path);

}  // namespace echelle::record
