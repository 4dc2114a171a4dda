#include "clients/mqtt/outbox.hpp"

#include <algorithm>
#include <utility>

#include <sys/eventfd.h>
#include <unistd.h>

#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

size_t bytes_of(const OutgoingMessage& message) {
    return message.topic.size() + message.payload.size();
}

}  // namespace

std::string_view name_of(Drop reason) {
    constexpr std::array<std::string_view, drop_reasons> names{"replaced", "queue_full",
                                                               "too_large", "refused", "stopped"};
    return names.at(static_cast<size_t>(reason));
}

Outbox::Outbox(OutboxLimits limits)
    : limits_(limits), news_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (!news_) {
        throw RunError("cannot make a descriptor for the queue: " + errno_text());
    }
}

void Outbox::clear_news() const {
    eventfd_t count = 0;
    eventfd_read(news_.get(), &count);
}

void Outbox::push(OutgoingMessage message) {
    const std::lock_guard lock(mutex_);
    ++books_.made;
    if (closed_) {
        count_drop(Drop::stopped);
        return;
    }
    const size_t bytes = bytes_of(message);
    if (bytes > limits_.bytes) {
        count_drop(Drop::too_large);
    } else if (message.latest_wins && replace_waiting(message)) {
        // it stands in the place of the older one
    } else if (!make_room(bytes)) {
        count_drop(Drop::queue_full);  // everything else is on its way
    } else {
        append(std::move(message));
    }
}

bool Outbox::replace_waiting(OutgoingMessage& message) {
    const auto found = replaceable_.find(message.topic);
    if (found == replaceable_.end()) {
        return false;
    }
    OutgoingMessage& old = *found->second;
    const uint64_t bytes = books_.bytes - bytes_of(old) + bytes_of(message);
    if (bytes > limits_.bytes) {
        forget(found->second, Drop::replaced);
        return false;  // to be put in like any other
    }
    books_.bytes = bytes;
    books_.most_bytes = std::max(books_.most_bytes, bytes);
    count_drop(Drop::replaced);
    old = std::move(message);
    return true;
}

bool Outbox::make_room(size_t bytes) {
    while (books_.waiting + books_.in_flight >= limits_.messages ||
           books_.bytes + bytes > limits_.bytes) {
        if (waiting_.empty()) {
            return false;
        }
        forget(waiting_.begin(), Drop::queue_full);
    }
    return true;
}

void Outbox::append(OutgoingMessage message) {
    const bool was_empty = waiting_.empty();
    books_.bytes += bytes_of(message);
    waiting_.push_back(std::move(message));
    if (waiting_.back().latest_wins) {
        replaceable_[waiting_.back().topic] = std::prev(waiting_.end());
    }
    ++books_.waiting;
    books_.most_messages = std::max(books_.most_messages, books_.waiting + books_.in_flight);
    books_.most_bytes = std::max(books_.most_bytes, books_.bytes);
    if (was_empty) {
        eventfd_write(news_.get(), 1);
    }
}

void Outbox::forget(Waiting::iterator at, Drop reason) {
    if (at->latest_wins) {
        replaceable_.erase(at->topic);
    }
    books_.bytes -= bytes_of(*at);
    --books_.waiting;
    count_drop(reason);
    waiting_.erase(at);
}

std::optional<Outbox::Taken> Outbox::take() {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) {
        return std::nullopt;
    }
    if (waiting_.front().latest_wins) {
        replaceable_.erase(waiting_.front().topic);
    }
    const uint64_t ticket = next_ticket_++;
    const auto [at, inserted] = in_flight_.emplace(ticket, std::move(waiting_.front()));
    waiting_.pop_front();
    --books_.waiting;
    ++books_.in_flight;
    return Taken{ticket, &at->second};
}

// After close() everything is settled.
std::optional<OutgoingMessage> Outbox::settle(uint64_t ticket) {
    if (closed_) {
        return std::nullopt;
    }
    auto node = in_flight_.extract(ticket);
    if (node.empty()) {
        return std::nullopt;
    }
    --books_.in_flight;
    books_.bytes -= bytes_of(node.mapped());
    return std::move(node.mapped());
}

void Outbox::delivered(uint64_t ticket) {
    const std::lock_guard lock(mutex_);
    if (settle(ticket)) {
        ++books_.delivered;
    }
}

void Outbox::drop(uint64_t ticket, Drop reason) {
    const std::lock_guard lock(mutex_);
    if (settle(ticket)) {
        count_drop(reason);
    }
}

void Outbox::put_back() {
    const std::lock_guard lock(mutex_);
    while (!closed_ && !in_flight_.empty()) {
        const auto last = std::prev(in_flight_.end());
        std::optional<OutgoingMessage> message = settle(last->first);
        if (message->latest_wins && replaceable_.contains(message->topic)) {
            count_drop(Drop::replaced);
            continue;
        }
        ++books_.repeated;
        ++books_.waiting;
        books_.bytes += bytes_of(*message);
        waiting_.push_front(std::move(*message));
        if (waiting_.front().latest_wins) {
            replaceable_[waiting_.front().topic] = waiting_.begin();
        }
    }
}

void Outbox::close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    while (!waiting_.empty()) {
        forget(waiting_.begin(), Drop::stopped);
    }
    // Their memory stays where it is: a connection that hangs may still be reading it.
    books_.dropped[static_cast<size_t>(Drop::stopped)] += books_.in_flight;
    books_.in_flight = 0;
    books_.bytes = 0;
}

OutboxBooks Outbox::books() const {
    const std::lock_guard lock(mutex_);
    return books_;
}

}  // namespace echelle::mqtt
