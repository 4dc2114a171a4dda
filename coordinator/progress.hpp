// The progress line on standard error: rewritten in place on a terminal, a line every few seconds
// on a pipe. Main thread only.
#pragma once

#include <cstdint>

#include "coordinator/report.hpp"

namespace echelle {

class Progress {
  public:
    explicit Progress(bool quiet);
    // Prints when it is time to.
    void update(const RunFacts& facts);
    // Ends the line on a terminal, so that what follows starts on its own.
    void finish();

  private:
    bool quiet_;
    bool is_terminal_;
    bool line_is_open_ = false;
    int64_t last_ns_;
    uint64_t last_done_ = 0;
};

}  // namespace echelle
