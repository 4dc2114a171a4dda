#include "clients/record/hdf5_handle.hpp"

#include <algorithm>
#include <string_view>

#include "common/error.hpp"

namespace echelle::record {
namespace {

herr_t take_first(unsigned int /*number*/, const H5E_error2_t* error, void* text) {
    *static_cast<std::string*>(text) = error->desc == nullptr ? "" : error->desc;
    return 1;  // no more of them
}

}  // namespace

void quiet_hdf5() {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

void leave_hdf5_open_at_exit() {
    H5dont_atexit();
}

std::string hdf5_cause() {
    std::string text;
    H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_first, &text);
    // Of a failed write it lists everything that it knows; what helps is in its middle.
    constexpr std::string_view before = "error message = '";
    const size_t at = text.find(before);
    if (at != std::string::npos) {
        text.erase(0, at + before.size());
        text.erase(std::min(text.size(), text.find('\'')));
    }
    return text.empty() ? "the HDF5 library does not say why" : text;
}

hid_t need(hid_t status, const char* what, const std::string& path) {
    if (status < 0) {
        throw RunError(std::string("cannot ") + what + " " + path + ": " + hdf5_cause());
    }
    return status;
}

}  // namespace echelle::record
