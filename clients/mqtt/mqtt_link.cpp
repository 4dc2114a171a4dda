#include "clients/mqtt/mqtt_link.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients/mqtt/library_assertion.hpp"
#include "common/error.hpp"

namespace echelle::mqtt {
namespace {

// At QoS 0 what the kernel holds back is old news: not more of it than this. It doubles the number.
constexpr int most_stale_bytes = 64 << 10;
// Broker's codes below this are success; of MQTT 3.1.1, refusals to connect are 1 to 5.
constexpr int first_error_code = 0x80;

// An encrypted key would have libmosquitto ask for its password on the terminal.
int no_password(char* /*buffer*/, int /*size*/, int /*rw*/, void* /*data*/) {
    return 0;
}

class Library {
  public:
    Library() { mosquitto_lib_init(); }
    ~Library() { mosquitto_lib_cleanup(); }
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
};

class Properties {
  public:
    Properties() = default;
    ~Properties() { mosquitto_property_free_all(&list_); }
    Properties(const Properties&) = delete;
    Properties& operator=(const Properties&) = delete;

    void add(const std::string& name, const std::string& value) {
        mosquitto_property_add_string_pair(&list_, MQTT_PROP_USER_PROPERTY, name.c_str(),
                                           value.c_str());
    }
    const mosquitto_property* get() const { return list_; }

  private:
    mosquitto_property* list_ = nullptr;
};

struct Refusal {
    int code;  // of MQTT 5
    const char* cause;
    const char* text;
    bool is_final;
};

constexpr std::array refusals{
    Refusal{MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION, "protocol_version",
            "it does not speak this version of MQTT: give --mqtt 3.1.1 (or 5)", true},
    Refusal{MQTT_RC_CLIENTID_NOT_VALID, "client_id",
            "it refuses the client id: give another one with --client-id", true},
    Refusal{MQTT_RC_BAD_USERNAME_OR_PASSWORD, "bad_password",
            "it refuses user or password: see --user and --password-file", true},
    Refusal{MQTT_RC_NOT_AUTHORIZED, "not_authorized",
            "it does not let this user or client in: see --user, --password-file and the broker's "
            "access rules",
            true},
    Refusal{MQTT_RC_BANNED, "banned", "it has banned this client: ask its operator", true},
    Refusal{MQTT_RC_BAD_AUTHENTICATION_METHOD, "not_authorized",
            "it wants another way of authentication than user and password", true},
    Refusal{MQTT_RC_SERVER_UNAVAILABLE, "unavailable", "it says that it is not available", false},
    Refusal{MQTT_RC_SERVER_BUSY, "unavailable", "it says that it is busy", false},
    Refusal{MQTT_RC_SERVER_SHUTTING_DOWN, "shut_down", "it has shut down", false},
    Refusal{MQTT_RC_KEEP_ALIVE_TIMEOUT, "keepalive", "it has not heard of us in time", false},
    Refusal{MQTT_RC_PACKET_TOO_LARGE, "too_large", "it refuses a message of this size", false},
    Refusal{MQTT_RC_ADMINISTRATIVE_ACTION, "closed", "its operator has closed the connection",
            false},
};

// The same codes of MQTT 3.1.1, which counts them from 1.
int mqtt_5_code(int code) {
    constexpr std::array codes{0,
                               int{MQTT_RC_UNSUPPORTED_PROTOCOL_VERSION},
                               int{MQTT_RC_CLIENTID_NOT_VALID},
                               int{MQTT_RC_SERVER_UNAVAILABLE},
                               int{MQTT_RC_BAD_USERNAME_OR_PASSWORD},
                               int{MQTT_RC_NOT_AUTHORIZED}};
    return code > 0 && code < static_cast<int>(codes.size()) ? codes[static_cast<size_t>(code)]
                                                             : code;
}

LinkEnd refusal_of(int code) {
    if (code == MQTT_RC_SESSION_TAKEN_OVER) {
        return {"taken_over",
                "another client has connected with our client id: give each gateway its own "
                "--client-id",
                false, true};
    }
    for (const Refusal& refusal : refusals) {
        if (refusal.code == code) {
            return {refusal.cause, refusal.text, refusal.is_final};
        }
    }
    return {"refused_by_broker", std::string("it answers: ") + mosquitto_reason_string(code)};
}

// A handshake that was cut off is worth another try, a certificate that is refused is not.
bool is_about_certificates(const std::string& openssl_error) {
    const auto speaks_of = [&](const char* word) {
        return openssl_error.find(word) != std::string::npos;
    };
    return speaks_of("certificate") || speaks_of("key") || speaks_of("alert");
}

LinkEnd tcp_failure(int error) {
    LinkEnd end{error == ECONNREFUSED ? "connection_refused" : "unreachable", errno_text(error)};
    end.is_tcp_failure = true;
    return end;
}

}  // namespace

std::string BrokerAddress::text() const {
    const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
    return (is_tls ? "mqtts://" : "mqtt://") + name + ":" + std::to_string(port);
}

struct LinkCallbacks {
    static MqttLink& link(void* object) { return *static_cast<MqttLink*>(object); }

    static void connected(mosquitto* /*client*/, void* object, int code, int /*flags*/,
                          const mosquitto_property* /*properties*/) {
        if (code != 0) {
            link(object).end_ = refusal_of(mqtt_5_code(code));
        } else {
            link(object).connected_ = true;
            link(object).limit_stale_bytes();
        }
    }
    // With a code of libmosquitto's, or of the broker's own farewell.
    static void disconnected(mosquitto* /*client*/, void* object, int code,
                             const mosquitto_property* /*properties*/) {
        MqttLink& self = link(object);
        if (!self.end_) {
            self.end_ = code >= first_error_code ? refusal_of(code) : self.end_of(code);
        }
    }
    static void published(mosquitto* /*client*/, void* object, int message_id, int code,
                          const mosquitto_property* /*properties*/) {
        const bool is_refused = code >= first_error_code;
        link(object).receipts_.push_back(
            {message_id, is_refused, is_refused ? mosquitto_reason_string(code) : ""});
    }
    static void logged(mosquitto* /*client*/, void* object, int level, const char* text) {
        if (level == MOSQ_LOG_ERR && link(object).first_error_.empty()) {
            link(object).first_error_ = text;
        }
    }
};

MqttLink::MqttLink(const BrokerOptions& options, const Will& will)
    : options_(options), client_(nullptr, mosquitto_destroy) {
    static const Library library;
    client_.reset(mosquitto_new(options.client_id.c_str(), true, this));
    if (!client_) {
        throw RunError("cannot make an MQTT client '" + options.client_id + "': " + errno_text());
    }
    set_options(will);
}

MqttLink::~MqttLink() = default;

void MqttLink::set_options(const Will& will) {
    mosquitto* client = client_.get();
    mosquitto_connect_v5_callback_set(client, LinkCallbacks::connected);
    mosquitto_disconnect_v5_callback_set(client, LinkCallbacks::disconnected);
    mosquitto_publish_v5_callback_set(client, LinkCallbacks::published);
    mosquitto_log_callback_set(client, LinkCallbacks::logged);
    const bool is_5 = options_.protocol == Protocol::mqtt_5;
    mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION,
                         is_5 ? MQTT_PROTOCOL_V5 : MQTT_PROTOCOL_V311);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    // Beside the window there are a status and a description.
    mosquitto_max_inflight_messages_set(client, options_.window + 2);
    mosquitto_will_set(client, will.topic.c_str(), static_cast<int>(will.payload.size()),
                       will.payload.data(), 1, true);
    if (!options_.user.empty()) {
        mosquitto_username_pw_set(client, options_.user.c_str(),
                                  options_.password ? options_.password->c_str() : nullptr);
    }
    if (options_.address.is_tls) {
        set_tls();
    }
}

void MqttLink::set_tls() {
    const auto or_null = [](const std::string& file) {
        return file.empty() ? nullptr : file.c_str();
    };
    if (options_.ca_file.empty()) {
        mosquitto_int_option(client_.get(), MOSQ_OPT_TLS_USE_OS_CERTS, 1);
    }
    const int code = mosquitto_tls_set(client_.get(), or_null(options_.ca_file),
                                       options_.ca_file.empty() ? "/etc/ssl/certs" : nullptr,
                                       or_null(options_.certificate_file),
                                       or_null(options_.key_file), no_password);
    if (code != MOSQ_ERR_SUCCESS) {
        throw UsageError(std::string("the files of --ca, --cert and --key cannot be used: ") +
                         mosquitto_strerror(code));
    }
}

void MqttLink::begin(AddressFamily family) {
    errno = 0;
    const int code = mosquitto_connect_bind_async(
        client_.get(), options_.address.host.c_str(), options_.address.port, options_.keepalive_s,
        family == AddressFamily::ipv4 ? "0.0.0.0" : nullptr);
    if (code > 0) {
        end_ = end_of(code);
    }
}

int MqttLink::descriptor() const {
    return mosquitto_socket(client_.get());
}

bool MqttLink::wants_write() const {
    return client_ && mosquitto_want_write(client_.get());
}

void MqttLink::note_failed_connect() {
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(descriptor(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) {
        end_ = failure_before_connected(error);
    }
}

void MqttLink::serve(short events) {
    if (!connected_ && (events & (POLLERR | POLLHUP)) != 0) {
        note_failed_connect();
    }
    if (!end_ && (events & (POLLIN | POLLERR | POLLHUP)) != 0) {
        read();
    }
    if (!end_ && (events & POLLOUT) != 0) {
        check(mosquitto_loop_write(client_.get(), 1));
    }
    if (!end_) {
        check(mosquitto_loop_misc(client_.get()));
    }
}

void MqttLink::read() {
    const auto read_once = [](void* client) {
        return mosquitto_loop_read(static_cast<mosquitto*>(client), 1);
    };
    int code = 0;
    const Outcome outcome = survive_assertion(read_once, client_.get(), code);
    if (outcome == Outcome::returned) {
        check(code);
        return;
    }
    end_ = {"protocol_error", "what it says is more than libmosquitto can read"};
    if (outcome == Outcome::failed_elsewhere) {
        ::close(descriptor());
        static_cast<void>(client_.release());  // its memory is lost, for nobody knows its state
    }
}

void MqttLink::check(int code) {
    if (code != MOSQ_ERR_SUCCESS && !end_) {
        end_ = end_of(code);
    }
}

void MqttLink::give_up(LinkEnd end) {
    end_ = std::move(end);
}

LinkEnd MqttLink::end_of(int code) const {
    switch (code) {
        case MOSQ_ERR_SUCCESS:
            return {"left", "we have left it"};
        case MOSQ_ERR_ERRNO:
            if (connected_) {
                return {"connection_lost", errno_text()};
            }
            return failure_before_connected(errno);
        case MOSQ_ERR_NO_CONN:
        case MOSQ_ERR_CONN_LOST:
            if (leaving_) {
                return {"left", "we have left it"};
            }
            return connected_ ? LinkEnd{"connection_lost", "the connection was closed"}
                              : closed_at_once();
        case MOSQ_ERR_EAI:
        case MOSQ_ERR_LOOKUP:
            return {"no_such_host", "its name '" + options_.address.host + "' cannot be resolved"};
        case MOSQ_ERR_KEEPALIVE:
            return {"keepalive",
                    "it has not answered for " + std::to_string(options_.keepalive_s) + " s"};
        case MOSQ_ERR_TLS:
        case MOSQ_ERR_TLS_HANDSHAKE:
            return {
                "tls",
                "no secure connection: " +
                    (first_error_.empty() ? "its certificate is refused, or ours" : first_error_) +
                    " (see --ca, --cert and --key)",
                !connected_ && is_about_certificates(first_error_)};
        default:
            return {"protocol_error",
                    std::string("what it says is no MQTT: ") + mosquitto_strerror(code)};
    }
}

// A refusal, or a broker's hurry to be rid of us, shows as a reset or as an end, as time has it.
LinkEnd MqttLink::failure_before_connected(int error) const {
    return error == ECONNRESET || error == EPIPE ? closed_at_once() : tcp_failure(error);
}

// In TLS 1.3 a broker that refuses our certificate says so after the handshake, if at all.
LinkEnd MqttLink::closed_at_once() const {
    return {"closed_at_once",
            std::string("it closes the connection at once") +
                (options_.address.is_tls
                     ? ": it may refuse our certificate, or want one (--cert and --key)"
                     : ": is it an MQTT broker, without TLS?")};
}

void MqttLink::limit_stale_bytes() {
    if (options_.qos == Qos::at_most_once) {
        setsockopt(descriptor(), SOL_SOCKET, SO_SNDBUF, &most_stale_bytes, sizeof most_stale_bytes);
    }
}

Published MqttLink::publish(const Publication& publication, int& message_id) {
    Properties properties;
    if (publication.sequence && options_.protocol == Protocol::mqtt_5) {
        properties.add("sequence", std::to_string(*publication.sequence));
        properties.add("boot", std::string(publication.boot));
    }
    const int code = mosquitto_publish_v5(
        client_.get(), &message_id, publication.topic.c_str(),
        static_cast<int>(publication.payload.size()), publication.payload.data(),
        static_cast<int>(publication.qos), publication.retain, properties.get());
    switch (code) {
        case MOSQ_ERR_SUCCESS:
            return Published::accepted;
        case MOSQ_ERR_PAYLOAD_SIZE:
        case MOSQ_ERR_OVERSIZE_PACKET:
            return Published::too_large;
        case MOSQ_ERR_NO_CONN:
        case MOSQ_ERR_CONN_LOST:
        case MOSQ_ERR_ERRNO:
        case MOSQ_ERR_TLS:
            check(code);
            return Published::no_connection;
        default:
            return Published::refused;
    }
}

std::vector<Receipt> MqttLink::take_receipts() {
    return std::exchange(receipts_, {});
}

void MqttLink::disconnect() {
    leaving_ = true;
    check(mosquitto_disconnect(client_.get()));
}

}  // namespace echelle::mqtt
