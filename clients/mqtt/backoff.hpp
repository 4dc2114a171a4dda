// How long to wait before a connection is tried again. The waits double from least to most, and
// each is drawn between a quarter and the whole of that: gateways that lose their broker together
// do not come back together. One thread.
#pragma once

#include <cstdint>
#include <random>

namespace echelle::mqtt {

struct BackoffLimits {
    double least_s = 1;
    double most_s = 60;
};

class Backoff {
  public:
    // `seed`: another one for each gateway.
    Backoff(BackoffLimits limits, uint64_t seed);

    double next_s();
    // The same for one that another client has put out with its own client id: between the longest
    // wait and twice that, then twice as long each time, up to 16 times. Who comes back at once
    // puts the other one out, and so on for ever.
    double next_after_take_over_s();
    // A connection has held.
    void reset();

  private:
    double drawn(double from_s, double to_s);

    BackoffLimits limits_;
    std::mt19937_64 random_;
    uint32_t failures_ = 0;
    uint32_t take_overs_ = 0;
};

}  // namespace echelle::mqtt
