// Lets at most so many spectra a second of each topic pass: the latest ones, or averages.
//
//   latest   a spectrum that comes when its topic's turn has come passes at once; else it is held
//            until then, and takes the place of one that is held already
//   average  a topic's first spectrum opens a window of 1/rate; its end sends the average of all
//            that came in it
//
// What is held is bounded in topics and bytes. Times are CLOCK_MONOTONIC. Owned by the hub's only
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include <zmq.hpp>

#include "clients/hub/hub_books.hpp"
#include "clients/hub/hub_options.hpp"
#include "clients/hub/message_check.hpp"
#include "clients/hub/spectrum_average.hpp"

namespace echelle {

class Decimator {
  public:
    using Send = std::function<void(std::string_view topic, zmq::message_t payload)>;
    static constexpr int64_t never = std::numeric_limits<int64_t>::max();

    // `rate_hz` 0: everything passes, as it came.
    Decimator(double rate_hz, Decimation decimation, HubBooks& books, Send send);

    // `spectrum` refers to the bytes of `payload`.
    void take(std::string_view topic, const CheckedSpectrum& spectrum, zmq::message_t payload,
              int64_t now_ns);
    // Sends what is due; the next time that something will be.
    void send_due(int64_t now_ns);
    int64_t next_due_ns() const { return due_.empty() ? never : due_.begin()->first; }
    // Sends all that is held: the run that it belongs to has ended. What comes next is of another
    // run, whose averages are counted anew.
    void end_run();

  private:
    struct Topic {
        SpectrumTopic kind = SpectrumTopic::psd;
        int64_t next_ns = 0;  // before that, nothing of it is sent
        int64_t due_ns = never;
        zmq::message_t held;
        SpectrumAverage average;
        uint64_t sequence = 0;  // of the next average
    };
    using Topics = std::unordered_map<std::string, Topic>;

    void take_latest(Topics::value_type& entry, zmq::message_t payload, int64_t now_ns);
    void take_for_average(Topics::value_type& entry, const CheckedSpectrum& spectrum,
                          int64_t now_ns);
    void hold_until(Topics::value_type& entry, int64_t due_ns);
    void send(Topics::value_type& entry, int64_t now_ns);
    void send_average(Topics::value_type& entry);

    int64_t period_ns_;
    Decimation decimation_;
    HubBooks& books_;
    Send send_;
    Topics topics_;
    std::set<std::pair<int64_t, Topics::value_type*>> due_;  // those that hold something
    size_t held_bytes_ = 0;
};

}  // namespace echelle
