// One connection to a broker, from its first step to its end; a new one is made for each try, so
// that nothing of libmosquitto's state outlives a connection. What is in flight when it ends is in
// the Outbox still, and libmosquitto's copy goes with the link.
//
// libmosquitto's own loop is not used: it cannot wait for descriptors of 1024 and more. Whoever
// owns the link polls descriptor() and calls serve(). One thread owns it. Nothing here waits, but
// for the resolver's answer in begin().
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "clients/mqtt/broker_options.hpp"

struct mosquitto;
typedef struct mqtt5__property mosquitto_property;

namespace echelle::mqtt {

// Why a connection ended, or never was: a name for the books, and a sentence for the operator.
struct LinkEnd {
    std::string cause;
    std::string text;
    bool is_final = false;        // trying again will not help: wrong password, wrong certificate
    bool is_take_over = false;    // another client came with our client id
    bool is_tcp_failure = false;  // nobody there at this address
};

struct Will {
    std::string topic;
    std::string payload;
};

// Addresses to try: a name may stand for one of each kind, and libmosquitto tries the first only.
enum class AddressFamily { any, ipv4 };

struct Receipt {
    int message_id = 0;
    bool is_refused = false;
    std::string reason;
};

struct Publication {
    const std::string& topic;
    const std::string& payload;
    Qos qos = Qos::at_most_once;
    bool retain = false;
    // Told beside the payload as user properties, where the protocol has them.
    std::optional<uint64_t> sequence = {};
    std::string_view boot = {};
};

enum class Published { accepted, too_large, refused, no_connection };

class MqttLink {
  public:
    MqttLink(const BrokerOptions& options, const Will& will);
    ~MqttLink();
    MqttLink(const MqttLink&) = delete;
    MqttLink& operator=(const MqttLink&) = delete;

    // Begins to connect. When it returns, has_ended() may be true already.
    void begin(AddressFamily family);
    // To be polled for reading, and for writing while wants_write(); -1 without a connection.
    int descriptor() const;
    bool wants_write() const;
    // To be called with poll's answer, and once a second without one.
    void serve(short events);
    void give_up(LinkEnd end);  // from outside: it took too long

    bool is_connected() const { return connected_ && !end_; }
    bool has_ended() const { return end_.has_value(); }
    const LinkEnd& end() const { return *end_; }

    Published publish(const Publication& publication, int& message_id);
    // Of messages that were written (QoS 0) or acknowledged (QoS 1) since the last call.
    std::vector<Receipt> take_receipts();
    void disconnect();

  private:
    friend struct LinkCallbacks;
    void set_options(const Will& will);
    void set_tls();
    void note_failed_connect();
    void read();
    void check(int code);
    LinkEnd end_of(int code) const;
    LinkEnd failure_before_connected(int error) const;
    LinkEnd closed_at_once() const;
    void limit_stale_bytes();

    const BrokerOptions& options_;
    std::unique_ptr<mosquitto, void (*)(mosquitto*)> client_;
    bool connected_ = false;
    bool leaving_ = false;
    std::optional<LinkEnd> end_;
    std::vector<Receipt> receipts_;
    std::string first_error_;  // that libmosquitto has told
};

}  // namespace echelle::mqtt
