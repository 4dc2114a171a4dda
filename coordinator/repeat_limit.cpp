#include "coordinator/repeat_limit.hpp"

#include <cctype>
#include <utility>

namespace echelle {
namespace {

constexpr size_t most_kinds = 64;

std::string kind_of(const std::string& message) {
    std::string kind;
    for (const char c : message) {
        const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
        if (!is_digit) {
            kind += c;
        } else if (kind.empty() || kind.back() != '#') {
            kind += '#';
        }
    }
    return kind;
}

}  // namespace

bool RepeatLimit::lets_through(const std::string& message, int64_t now_ns) {
    std::string name = kind_of(message);
    if (kinds_.size() >= most_kinds && !kinds_.contains(name)) {
        name.clear();
    }
    Kind& kind = kinds_[name];
    // What it has held back must be told before it starts anew.
    if (kind.shown == 0 || (now_ns - kind.began_ns > window_ns && kind.held_back.count == 0)) {
        kind = {now_ns, 0, {}};
    }
    if (kind.shown < shown_at_once) {
        kind.shown += 1;
        return true;
    }
    kind.held_back.count += 1;
    kind.held_back.example = message;
    return false;
}

std::vector<RepeatLimit::HeldBack> RepeatLimit::take_held_back(int64_t now_ns, bool all) {
    std::vector<HeldBack> taken;
    for (auto kind = kinds_.begin(); kind != kinds_.end();) {
        if (!all && now_ns - kind->second.began_ns <= window_ns) {
            ++kind;
            continue;
        }
        if (kind->second.held_back.count > 0) {
            taken.push_back(std::move(kind->second.held_back));
        }
        kind = kinds_.erase(kind);
    }
    return taken;
}

}  // namespace echelle
