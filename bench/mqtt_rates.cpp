// How many messages a second reach a broker: by echelle-mqtt's own publisher (its queue, its books
// and its thread), and by bare libmosquitto (its queue and its thread).
//
//   mqtt_rates --client gateway --port 21883 --qos 1 --bytes 256 --messages 50000
//
// The time is from the first message, with the connection made, until the broker has acknowledged
// the last one; at QoS 0, one at QoS 1 that follows it. Prints {"seconds": …, "rate": …}.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>

#include <CLI/CLI.hpp>
#include <mosquitto.h>

#include "clients/mqtt/broker_connection.hpp"
#include "clients/mqtt/messages.hpp"
#include "clients/mqtt/outbox.hpp"
#include "common/clock.hpp"
#include "common/error.hpp"

namespace echelle::bench {
namespace {

constexpr int window = 100;
constexpr int64_t patience_ns = 60'000'000'000;
const std::string topic = "echelle/bench/bands/00007";

struct Work {
    std::string client = "gateway";
    uint16_t port = 1883;
    int qos = 0;
    size_t bytes = 256;
    uint64_t messages = 50'000;
};

void wait_until(const std::function<bool()>& condition, const char* what) {
    const int64_t deadline = monotonic_ns() + patience_ns;
    while (!condition()) {
        if (monotonic_ns() > deadline) {
            throw RunError(std::string("this never came: ") + what);
        }
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
}

double seconds_since(int64_t begun_ns) {
    return static_cast<double>(monotonic_ns() - begun_ns) / 1e9;
}

double by_gateway(const Work& work) {
    mqtt::BrokerOptions options;
    options.address = {"127.0.0.1", work.port, false};
    options.client_id = "bench-gateway";
    options.qos = work.qos == 0 ? mqtt::Qos::at_most_once : mqtt::Qos::at_least_once;
    options.window = window;
    mqtt::be_quiet();
    mqtt::Outbox outbox({work.messages + 1, size_t{1} << 40});
    const auto status = [](const std::string& state, const std::string&, uint64_t) {
        return state;
    };
    mqtt::BrokerConnection connection(options, {"echelle/bench/status", status, "x", "boot"},
                                      outbox);
    connection.start();
    wait_until([&] { return connection.figures().is_connected; }, "the connection");
    const std::string payload(work.bytes, 'x');
    const int64_t begun_ns = monotonic_ns();
    for (uint64_t i = 0; i < work.messages; ++i) {
        outbox.push({topic, payload, i});
    }
    connection.finish("done", begun_ns + patience_ns);  // its goodbye is at QoS 1
    if (!connection.wait_for_end(patience_ns) || outbox.books().delivered != work.messages) {
        throw RunError("not every message was delivered");
    }
    return seconds_since(begun_ns);
}

std::atomic<uint64_t> written_or_acknowledged{0};
std::atomic<bool> connected{false};

double by_libmosquitto(const Work& work) {
    mosquitto_lib_init();
    mosquitto* client = mosquitto_new("bench-bare", true, nullptr);
    mosquitto_int_option(client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(client, MOSQ_OPT_TCP_NODELAY, 1);
    mosquitto_max_inflight_messages_set(client, window);
    mosquitto_connect_callback_set(client, [](mosquitto*, void*, int) { connected = true; });
    mosquitto_publish_callback_set(client,
                                   [](mosquitto*, void*, int) { ++written_or_acknowledged; });
    if (mosquitto_connect(client, "127.0.0.1", work.port, 60) != MOSQ_ERR_SUCCESS ||
        mosquitto_loop_start(client) != MOSQ_ERR_SUCCESS) {
        throw RunError("no broker there");
    }
    wait_until([] { return connected.load(); }, "the connection");
    const std::string payload(work.bytes, 'x');
    const int64_t begun_ns = monotonic_ns();
    for (uint64_t i = 0; i < work.messages; ++i) {
        mosquitto_publish(client, nullptr, topic.c_str(), static_cast<int>(payload.size()),
                          payload.data(), work.qos, false);
    }
    mosquitto_publish(client, nullptr, "echelle/bench/status", 4, "done", 1, false);
    wait_until([&] { return written_or_acknowledged.load() == work.messages + 1; },
               "the last acknowledgement");
    const double seconds = seconds_since(begun_ns);
    mosquitto_disconnect(client);
    mosquitto_loop_stop(client, false);
    mosquitto_destroy(client);
    mosquitto_lib_cleanup();
    return seconds;
}

}  // namespace
}  // namespace echelle::bench

int main(int argc, char** argv) {
    using namespace echelle::bench;
    Work work;
    CLI::App app("Messages per second to a broker on this machine", "mqtt_rates");
    app.add_option("--client", work.client)->check(CLI::IsMember({"gateway", "libmosquitto"}));
    app.add_option("--port", work.port);
    app.add_option("--qos", work.qos)->check(CLI::Range(0, 1));
    app.add_option("--bytes", work.bytes);
    app.add_option("--messages", work.messages);
    CLI11_PARSE(app, argc, argv);
    try {
        const double seconds = work.client == "gateway" ? by_gateway(work) : by_libmosquitto(work);
        std::printf("{\"seconds\": %.6f, \"rate\": %.1f}\n", seconds,
                    static_cast<double>(work.messages) / seconds);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "mqtt_rates: %s\n", error.what());
        return 1;
    }
}
