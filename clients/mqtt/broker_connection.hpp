// Keeps a connection to the broker and delivers the outbox through it, on a thread of its own; when
// the connection is lost it is made again, after a wait that grows and is partly drawn by chance.
//
// QoS 0: a message is taken out of the outbox when the connection takes it, one at a time. What the
// broker does not take stays in the outbox, where the latest of each topic wins. QoS 1: as many are
// in flight as the window allows; those without an answer when a connection ends are sent again.
//
// The thread that makes it calls everything here.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "clients/mqtt/broker_options.hpp"
#include "clients/mqtt/mqtt_link.hpp"
#include "clients/mqtt/outbox.hpp"
#include "common/file_descriptor.hpp"

namespace echelle::mqtt {

struct ConnectionFigures {
    uint64_t tries = 0;
    uint64_t made = 0;
    uint64_t taken_over = 0;
    std::map<std::string, uint64_t> failed;  // tries that came to nothing, by cause
    std::map<std::string, uint64_t> lost;    // connections, by cause
    uint64_t standing_sent = 0;              // status and description: not in the outbox's books
    bool is_connected = false;
    std::string last_end;  // why the last one ended, or was not made
};

class BrokerConnection {
  public:
    // What stands at the broker (retained): whether we are there, and a description.
    struct Standing {
        std::string status_topic;
        // The status' text: "online" or "offline", why, and which connection of ours it is.
        std::function<std::string(const std::string& status, const std::string& reason,
                                  uint64_t connection)>
            status;
        std::string description_topic;
        std::string boot;
    };

    BrokerConnection(const BrokerOptions& options, Standing standing, Outbox& outbox);
    // Ends it at once, and waits for that.
    ~BrokerConnection();
    BrokerConnection(const BrokerConnection&) = delete;
    BrokerConnection& operator=(const BrokerConnection&) = delete;

    void start();
    // Published now and whenever a connection is made.
    void describe(const std::string& description);
    // From now on it delivers what waits, says goodbye (`reason`) and ends: until the deadline
    // (CLOCK_MONOTONIC), and two seconds later at most. Called again, it moves the deadline.
    void finish(const std::string& reason, int64_t deadline_ns);
    // Whether it has ended, after that wait at most. A thread that hangs (in the resolver) never
    // has: then neither this object nor the outbox may be destroyed, and the process should end.
    bool wait_for_end(int64_t most_ns);
    // Why it has given up, if it has: a refusal before it was ever let in, or a fault of its own.
    std::optional<std::string> failure() const;
    ConnectionFigures figures() const;

  private:
    enum class Mode { deliver, finish };

    void run();
    LinkEnd live_once();
    LinkEnd try_address(AddressFamily family);
    void serve_link(MqttLink& link);
    bool is_too_late_to_connect(const MqttLink& link, int64_t begun_ns) const;
    void greet(MqttLink& link);
    std::optional<int> send_standing(MqttLink& link, const std::string& topic,
                                     const std::string& text);
    void send_description(MqttLink& link);
    void tell_too_large(size_t bytes, const std::string& topic);
    void tell_refusal(const std::string& reason, const std::string& topic);
    void hand_on(MqttLink& link);
    void send(MqttLink& link, const Outbox::Taken& taken);
    void settle(MqttLink& link);
    bool take_leave(MqttLink& link);
    void wait_for_events(MqttLink& link);
    void pause(double seconds);
    void note_connected();
    void note_end(const LinkEnd& end, double wait_s);
    bool is_finishing() const;
    int64_t deadline() const;
    bool gives_up(const LinkEnd& end);
    bool has_held() const;
    LinkEnd suspecting_a_twin(LinkEnd end);
    double wait_after(const LinkEnd& end);

    const BrokerOptions options_;
    const Standing standing_;
    Outbox& outbox_;
    FileDescriptor wake_;

    // Of the connection's thread alone.
    Backoff backoff_;
    std::unordered_map<int, uint64_t> tickets_;  // by message id: in flight on this connection
    std::optional<int> goodbye_id_;              // of the last status, while it is under way
    bool goodbye_done_ = false;
    bool leaving_ = false;
    int quick_losses_ = 0;  // connections in a row that did not hold, and no try failed between
    bool told_refusal_ = false;
    bool told_too_large_ = false;
    int64_t connected_ns_ = 0;
    std::string told_cause_;
    int64_t told_ns_ = 0;

    mutable std::mutex mutex_;  // of all that follows
    std::condition_variable ended_;
    ConnectionFigures figures_;
    std::string description_;
    bool has_new_description_ = false;
    Mode mode_ = Mode::deliver;
    std::string goodbye_;
    int64_t deadline_ns_ = 0;
    std::optional<std::string> failure_;
    bool has_ended_ = false;
    std::thread thread_;
};

}  // namespace echelle::mqtt
