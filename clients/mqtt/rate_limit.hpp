// Lets at most so many pass in a second, evenly spaced. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace echelle::mqtt {

class RateLimit {
  public:
    // `period_ns` 0: everything passes.
    bool passes(int64_t period_ns, int64_t now_ns) {
        if (period_ns > 0 && now_ns < due_ns_) {
            return false;
        }
        // One period after the last was due, so that the rate is kept on average; but no catching
        // up.
        due_ns_ = std::max(due_ns_ + period_ns, now_ns + period_ns / 2);
        return true;
    }

  private:
    int64_t due_ns_ = 0;
};

}  // namespace echelle::mqtt
