#include "coordinator/sources/reorder_window.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "common/invariant.hpp"

namespace echelle {
namespace {

// Numbers may be any; differences wrap round instead of overflowing.
int64_t distance(int64_t to, int64_t from) {
    return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
}

int64_t after(int64_t number) {
    return static_cast<int64_t>(static_cast<uint64_t>(number) + 1);
}

}  // namespace

ReorderWindow::ReorderWindow(uint32_t span, int64_t longest_loss)
    : span_(span), longest_loss_(longest_loss), slots_(std::bit_ceil(span)) {
    ECHELLE_INVARIANT(span >= 1 && longest_loss >= 1);
}

void ReorderWindow::add(int64_t number, Handle handle, Outcome& outcome) {
    const int64_t ahead = distance(number, next_);
    if (has_begun_ && ahead >= 0 && ahead <= longest_loss_) {
        refuse_run(outcome);
        add_in_window(number, handle, outcome);
        return;
    }
    add_outlier({number, handle, refusal_of(number)}, outcome);
}

void ReorderWindow::add_in_window(int64_t number, Handle handle, Outcome& outcome) {
    while (distance(number, next_) >= span_) {
        advance(outcome);
    }
    Slot& place = slot(number);
    if (place.is_held) {
        ++counts_.duplicates;
        outcome.refused.push_back(handle);
        return;
    }
    place = {handle, true};
    ++held_;
    if (distance(number, highest_) < 0) {
        ++counts_.reordered;
    } else {
        highest_ = number;
    }
    deliver_ready(outcome);
}

// Past the next number, whether its packet is there or not.
void ReorderWindow::advance(Outcome& outcome) {
    Slot& place = slot(next_);
    const bool is_there = std::exchange(place.is_held, false);
    was_delivered(next_) = is_there ? 1 : 0;
    if (is_there) {
        --held_;
        ++counts_.delivered;
        outcome.deliveries.push_back(
            {place.handle, std::exchange(missing_, 0), std::exchange(restarted_, false)});
    } else {
        ++missing_;
        ++counts_.lost;
    }
    next_ = after(next_);
}

void ReorderWindow::deliver_ready(Outcome& outcome) {
    while (held_ > 0 && slot(next_).is_held) {
        advance(outcome);
    }
}

void ReorderWindow::flush(Outcome& outcome) {
    refuse_run(outcome);  // while what it was compared with is still known
    while (held_ > 0) {
        advance(outcome);
    }
}

ReorderWindow::Refusal ReorderWindow::refusal_of(int64_t number) const {
    const int64_t behind = distance(next_, number);
    if (!has_begun_ || behind <= 0 || behind > history) {
        return Refusal::stray;
    }
    if (distance(number, begun_at_) < 0) {
        return Refusal::late;  // overtaken by the very first packet
    }
    return delivered_[static_cast<uint64_t>(number) % history] != 0 ? Refusal::duplicate
                                                                    : Refusal::late;
}

void ReorderWindow::add_outlier(const Outlier& outlier, Outcome& outcome) {
    const auto same = [&outlier](const Outlier& other) { return other.number == outlier.number; };
    if (std::any_of(run_.begin(), run_.begin() + static_cast<std::ptrdiff_t>(run_size_), same)) {
        ++counts_.duplicates;
        outcome.refused.push_back(outlier.handle);
        return;
    }
    if (run_size_ > 0 && !belongs_to_run(outlier.number)) {
        refuse_run(outcome);
    }
    run_[run_size_++] = outlier;
    if (run_size_ == (has_begun_ ? restart_run : start_run)) {
        begin_at_run(outcome);
    }
}

bool ReorderWindow::belongs_to_run(int64_t number) const {
    const int64_t away = distance(number, run_[run_size_ - 1].number);
    return away >= -span_ && away <= span_;
}

void ReorderWindow::refuse_run(Outcome& outcome) {
    for (size_t i = 0; i < run_size_; ++i) {
        refuse(run_[i], outcome);
    }
    run_size_ = 0;
}

void ReorderWindow::refuse(const Outlier& outlier, Outcome& outcome) {
    outcome.refused.push_back(outlier.handle);
    switch (outlier.refusal) {
        case Refusal::duplicate:
            ++counts_.duplicates;
            return;
        case Refusal::stray:
            ++counts_.strays;
            return;
        case Refusal::late:
            break;
    }
    ++counts_.late;
    if (distance(outlier.number, begun_at_) < 0) {
        return;
    }
    // It came after all: not lost. A second copy of it is a duplicate.
    --counts_.lost;
    was_delivered(outlier.number) = 1;
}

void ReorderWindow::begin_at_run(Outcome& outcome) {
    const size_t size = std::exchange(run_size_, 0);
    const std::array<Outlier, restart_run> run = run_;
    while (held_ > 0) {
        advance(outcome);
    }
    int64_t first = run[0].number;
    for (size_t i = 1; i < size; ++i) {
        first = distance(run[i].number, first) < 0 ? run[i].number : first;
    }
    counts_.restarts += has_begun_ ? 1 : 0;
    restarted_ = has_begun_;
    begin(first);
    for (size_t i = 0; i < size; ++i) {
        // A run may be wider than the window where packets are missing in it.
        add(run[i].number, run[i].handle, outcome);
    }
}

void ReorderWindow::begin(int64_t number) {
    has_begun_ = true;
    begun_at_ = number;
    next_ = number;
    highest_ = number;
    missing_ = 0;
    delivered_.fill(0);
}

}  // namespace echelle
