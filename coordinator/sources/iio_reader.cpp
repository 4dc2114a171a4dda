#include "coordinator/sources/iio_reader.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr size_t most_parts = 16;  // then the reader waits, and the driver's own buffer fills
constexpr std::chrono::milliseconds patience_for_thread{2000};

std::atomic<uint32_t> threads_left_behind{0};

IioTrouble trouble_of(int error) {
    switch (error) {
        case ETIMEDOUT:
            return IioTrouble::timed_out;
        case ENODEV:
        case ENXIO:
            return IioTrouble::device_gone;
        case EPIPE:
        case ECONNRESET:
        case ECONNABORTED:
        case ENOTCONN:
            return IioTrouble::connection_lost;
        default:
            return IioTrouble::io_error;
    }
}

bool is_same(const IioElement& a, const IioElement& b) {
    return a.name == b.name && a.index == b.index && a.bits == b.bits &&
           a.storage_bits == b.storage_bits && a.repeat == b.repeat && a.shift == b.shift &&
           a.is_signed == b.is_signed && a.is_big_endian == b.is_big_endian;
}

}  // namespace

const char* name_of(IioTrouble trouble) {
    switch (trouble) {
        case IioTrouble::timed_out:
            return "timed_out";
        case IioTrouble::stuck:
            return "stuck";
        case IioTrouble::device_gone:
            return "device_gone";
        case IioTrouble::connection_lost:
            return "connection_lost";
        case IioTrouble::io_error:
            return "io_error";
        case IioTrouble::cannot_open:
            return "cannot_open";
        case IioTrouble::changed:
            return "changed";
    }
    return "unknown";
}

// Of the thread and its owner, whichever lives longer.
struct IioReader::Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<IioPart> parts;
    std::optional<Failure> failure;
    IioDevice* device = nullptr;  // while it may be cancelled
    bool stop = false;
    bool ended = false;
    bool counted_as_left_behind = false;

    void fail(IioTrouble trouble, const std::string& text) {
        const std::lock_guard lock(mutex);
        failure = Failure{trouble, text};
        changed.notify_all();
    }
    void set_device(IioDevice* now) {
        const std::lock_guard lock(mutex);
        device = now;
        if (stop && now != nullptr) {
            now->cancel();
        }
    }
    // False when the reader is to end.
    bool push(IioPart part) {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return stop || parts.size() < most_parts; });
        if (!stop) {
            parts.push_back(std::move(part));
            changed.notify_all();
        }
        return !stop;
    }
};

IioReader::IioReader(const Plan& plan) : shared_(std::make_shared<Shared>()) {
    // Both are copied: the thread may outlive us.
    thread_ = std::thread([shared = shared_, plan] {
        run(shared, plan);
        const std::lock_guard lock(shared->mutex);
        shared->ended = true;
        if (shared->counted_as_left_behind) {
            threads_left_behind.fetch_sub(1, std::memory_order_relaxed);
        }
        shared->changed.notify_all();
    });
}

IioReader::~IioReader() {
    std::unique_lock lock(shared_->mutex);
    shared_->stop = true;
    if (shared_->device != nullptr) {
        shared_->device->cancel();
    }
    shared_->changed.notify_all();
    if (shared_->changed.wait_for(lock, patience_for_thread, [this] { return shared_->ended; })) {
        lock.unlock();
        thread_.join();
        return;
    }
    shared_->counted_as_left_behind = true;
    threads_left_behind.fetch_add(1, std::memory_order_relaxed);
    lock.unlock();
    thread_.detach();
}

uint32_t IioReader::left_behind() {
    return threads_left_behind.load(std::memory_order_relaxed);
}

void IioReader::run(const std::shared_ptr<Shared>& shared, const Plan& plan) {
    std::unique_ptr<IioDevice> device;
    try {
        device = std::make_unique<IioDevice>(plan.choice);
        const auto& now = device->elements();
        if (!std::equal(now.begin(), now.end(), plan.elements.begin(), plan.elements.end(),
                        is_same)) {
            shared->fail(IioTrouble::changed,
                         "its channels or their formats are others than "
                         "when the run began");
            return;
        }
        shared->set_device(device.get());
        device->start(plan.refill_scans, plan.unpadded_scan_bytes);
    } catch (const std::exception& error) {
        shared->set_device(nullptr);
        shared->fail(IioTrouble::cannot_open, error.what());
        return;
    }
    try {
        bool goes_on = true;
        while (goes_on) {
            const std::span<const std::byte> bytes = device->refill();
            goes_on = shared->push({{bytes.begin(), bytes.end()}, monotonic_ns()});
        }
    } catch (const IioError& error) {
        shared->fail(trouble_of(error.error()), error.what());
    } catch (const std::exception& error) {
        shared->fail(IioTrouble::io_error, error.what());
    }
    shared->set_device(nullptr);
}

std::optional<IioPart> IioReader::next(int64_t timeout_ns) {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::nanoseconds(timeout_ns), [this] {
        return !shared_->parts.empty() || shared_->failure.has_value();
    });
    if (shared_->parts.empty()) {
        return std::nullopt;
    }
    IioPart part = std::move(shared_->parts.front());
    shared_->parts.pop_front();
    shared_->changed.notify_all();
    return part;
}

std::optional<IioReader::Failure> IioReader::failure() const {
    const std::lock_guard lock(shared_->mutex);
    return shared_->parts.empty() ? shared_->failure : std::nullopt;
}

}  // namespace echelle
