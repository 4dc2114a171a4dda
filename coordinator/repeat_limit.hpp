// Lets the first few of many messages of a kind through, and counts the others. Two messages are of
// a kind when they differ in their numbers alone: "worker 3 ended" and "worker 12 ended".
//
// Not shared: the owner guards it. Bounded: it knows 64 kinds at a time; further ones count as one.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace echelle {

class RepeatLimit {
  public:
    static constexpr uint32_t shown_at_once = 8;
    static constexpr int64_t window_ns = 10'000'000'000;

    // Whether to show it.
    bool lets_through(const std::string& message, int64_t now_ns);

    // Those held back, of each kind whose window is over (or of all), and forgets them.
    struct HeldBack {
        std::string example;  // the last one
        uint64_t count = 0;
    };
    std::vector<HeldBack> take_held_back(int64_t now_ns, bool all);

  private:
    struct Kind {
        int64_t began_ns = 0;
        uint32_t shown = 0;
        HeldBack held_back;
    };
    std::map<std::string, Kind> kinds_;
};

}  // namespace echelle
