// Decides how many workers there should be, for --workers MIN..MAX. Pure: it is shown figures at a
// steady interval and answers with a decision; the supervisor carries it out.
//
// Up by one when the ring's backlog stays above a quarter of its length, or the workers stay busy
// more than 90 % of the time. Down by one when the backlog stays under 5 % and one worker fewer
// would still be less than 70 % busy. Going up takes half a second of evidence, going down three
// seconds, and after every change the workers get as long to show what it did: so it does not
// swing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace echelle {

class Autoscaler {
  public:
    static constexpr double interval_s = 0.25;  // between looks

    struct Look {
        uint32_t workers = 0;  // at work now
        double backlog = 0;    // unclaimed frames / ring length, 0..1
        double busy = 0;       // share of the interval that workers spent on blocks, 0..1
    };
    struct Decision {
        uint32_t workers = 0;
        std::string reason;
    };

    Autoscaler(uint32_t least, uint32_t most) : least_(least), most_(most) {}
    // To be called every interval_s. Nothing: stay as it is.
    std::optional<Decision> look(const Look& now);

  private:
    static constexpr uint32_t looks_up = 2;
    static constexpr uint32_t looks_down = 12;
    static constexpr uint32_t looks_after_change = 2;

    uint32_t least_;
    uint32_t most_;
    uint32_t wants_up_ = 0;    // looks in a row
    uint32_t wants_down_ = 0;  // looks in a row
    uint32_t settling_ = 0;    // looks to be ignored after a change
};

}  // namespace echelle
