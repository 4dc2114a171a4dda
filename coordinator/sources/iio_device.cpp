#include "coordinator/sources/iio_device.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <iio.h>

#include "common/error.hpp"

namespace echelle {
namespace {

std::string text_or_empty(const char* text) {
    return text == nullptr ? std::string() : std::string(text);
}

bool is_input_element(const iio_channel* channel) {
    return iio_channel_is_scan_element(channel) && !iio_channel_is_output(channel);
}

// Samples only: a timestamp's 64 bits are no sample.
bool is_sample(const iio_channel* channel) {
    return is_input_element(channel) && text_or_empty(iio_channel_get_id(channel)) != "timestamp";
}

template <typename Visit>
void for_each_channel(const iio_device* device, Visit visit) {
    for (unsigned int i = 0; i < iio_device_get_channels_count(device); ++i) {
        visit(iio_device_get_channel(device, i));
    }
}

bool has_samples(const iio_device* device) {
    bool found = false;
    for_each_channel(device,
                     [&found](iio_channel* channel) { found = found || is_sample(channel); });
    return found;
}

std::string display_name(const iio_device* device) {
    const std::string name = text_or_empty(iio_device_get_name(device));
    return name.empty() ? text_or_empty(iio_device_get_id(device)) : name;
}

void add_to_list(std::string& list, const std::string& name) {
    list += (list.empty() ? "'" : ", '") + name + "'";
}

IioElement element_of(const iio_channel* channel) {
    const iio_data_format* format = iio_channel_get_data_format(channel);
    IioElement element;
    element.name = text_or_empty(iio_channel_get_id(channel));
    element.index = static_cast<uint64_t>(iio_channel_get_index(channel));
    element.bits = format->bits;
    element.storage_bits = format->length;
    element.repeat = std::max(1U, format->repeat);
    element.shift = format->shift;
    element.is_signed = format->is_signed;
    element.is_big_endian = format->is_be;
    return element;
}

}  // namespace

IioError::IioError(int error) : std::runtime_error(errno_text(error)), error_(error) {}

IioDevice::IioDevice(const IioChoice& choice) : context_(nullptr, iio_context_destroy) {
    // A copy: libiio 0.24 writes a NUL over the colon before a port.
    const std::vector<char> uri(choice.context.c_str(),
                                choice.context.c_str() + choice.context.size() + 1);
    context_.reset(iio_create_context_from_uri(uri.data()));
    if (!context_) {
        throw UsageError("cannot connect to IIO at '" + choice.context + "': " + errno_text() +
                         "; write iio:local: or iio:ip:HOST, and see iio_info -u " +
                         choice.context);
    }
    // Not every backend takes one; the reader's own deadline holds in any case.
    static_cast<void>(!iio_context_set_timeout(context_.get(), choice.timeout_ms));
    find_device(choice);
    find_channels(choice);
    read_frequency();
}

IioDevice::~IioDevice() {
    const std::lock_guard lock(buffer_mutex_);
    if (buffer_ != nullptr) {
        iio_buffer_destroy(buffer_);
        buffer_ = nullptr;
    }
}

void IioDevice::find_device(const IioChoice& choice) {
    std::string there;
    unsigned int count = 0;
    for (unsigned int i = 0; i < iio_context_get_devices_count(context_.get()); ++i) {
        iio_device* device = iio_context_get_device(context_.get(), i);
        if (!has_samples(device)) {
            continue;
        }
        ++count;
        add_to_list(there, display_name(device));
        if (choice.device.empty() || choice.device == display_name(device) ||
            choice.device == text_or_empty(iio_device_get_id(device))) {
            device_ = device;
        }
    }
    if (device_ == nullptr || (choice.device.empty() && count > 1)) {
        throw UsageError((choice.device.empty() ? "which device of '" + choice.context + "'?"
                                                : "'" + choice.context + "' has no device '" +
                                                      choice.device + "' that can be sampled.") +
                         (there.empty()
                              ? " None there can be sampled into a buffer: check its driver"
                              : " There are " + there + ": choose with device="));
    }
    name_ = display_name(device_);
}

void IioDevice::find_channels(const IioChoice& choice) {
    std::vector<std::string> wanted = choice.channels;
    std::string there;
    for_each_channel(device_, [&](iio_channel* channel) {
        if (!is_input_element(channel)) {
            return;
        }
        // What another program had enabled stays enabled unless it is told otherwise.
        iio_channel_disable(channel);
        if (!is_sample(channel)) {
            return;
        }
        const std::string id = text_or_empty(iio_channel_get_id(channel));
        const std::string name = text_or_empty(iio_channel_get_name(channel));
        add_to_list(there, id);
        const auto found =
            std::find_if(wanted.begin(), wanted.end(), [&](const std::string& given) {
                return given == id || (!name.empty() && given == name);
            });
        if (found == wanted.end() && !choice.channels.empty()) {
            return;
        }
        if (found != wanted.end()) {
            wanted.erase(found);
        }
        iio_channel_enable(channel);
        elements_.push_back(element_of(channel));
    });
    if (!wanted.empty()) {
        throw UsageError("device '" + name_ + "' has no channel '" + wanted.front() +
                         "' that can be sampled: there are " + there);
    }
}

void IioDevice::read_frequency() {
    constexpr const char* attribute = "sampling_frequency";
    std::array<char, 256> text{};
    if (iio_device_attr_read(device_, attribute, text.data(), text.size() - 1) > 0) {
        frequency_ = text.data();
    }
    for_each_channel(device_, [&](iio_channel* channel) {
        if (!frequency_ && iio_channel_is_enabled(channel) &&
            iio_channel_attr_read(channel, attribute, text.data(), text.size() - 1) > 0) {
            frequency_ = text.data();
        }
    });
    if (frequency_) {
        frequency_->erase(frequency_->find_last_not_of(" \n") + 1);
    }
}

void IioDevice::start(size_t scans, size_t unpadded_scan_bytes) {
    // libiio and we must mean the same bytes (libiio PR#198: a mask that lost channels).
    const ssize_t counted = iio_device_get_sample_size(device_);
    if (counted < 0 || static_cast<size_t>(counted) != unpadded_scan_bytes) {
        throw RunError("libiio counts " + std::to_string(counted) +
                       " bytes for a scan of device '" + name_ + "', its channels' formats make " +
                       std::to_string(unpadded_scan_bytes) +
                       ": choose fewer channels with channels=");
    }
    iio_buffer* buffer = iio_device_create_buffer(device_, scans, false);
    if (buffer == nullptr) {
        const int error = errno;
        throw RunError("cannot sample device '" + name_ + "': " + errno_text(error) +
                       (error == EBUSY
                            ? "; another program has its buffer"
                            : "; check permissions of /dev/iio:device* and the trigger"));
    }
    const std::lock_guard lock(buffer_mutex_);
    buffer_ = buffer;
    if (cancelled_) {
        iio_buffer_cancel(buffer_);
    }
}

std::span<const std::byte> IioDevice::refill() {
    const ssize_t bytes = iio_buffer_refill(buffer_);
    if (bytes < 0) {
        throw IioError(static_cast<int>(-bytes));
    }
    return {static_cast<const std::byte*>(iio_buffer_start(buffer_)), static_cast<size_t>(bytes)};
}

void IioDevice::cancel() {
    const std::lock_guard lock(buffer_mutex_);
    cancelled_ = true;
    if (buffer_ != nullptr) {
        iio_buffer_cancel(buffer_);
    }
}

}  // namespace echelle
