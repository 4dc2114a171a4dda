// echellectl: asks a running coordinator for its status or tells it to stop, over its control
// endpoint. Exit codes: 0 done; 1 refused or no answer; 2 wrong usage.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <zmq.hpp>

#include "common/error.hpp"
#include "common/instance.hpp"

namespace {

using Json = nlohmann::ordered_json;
using echelle::RunError;
using echelle::UsageError;

struct Request {
    std::string name = echelle::default_instance_name;
    std::string endpoint;
    std::string command;
    bool as_json = false;
    int timeout_ms = 2000;
};

Json ask(const Request& request) {
    const std::string endpoint =
        request.endpoint.empty() ? echelle::control_endpoint(request.name) : request.endpoint;
    zmq::context_t context(1);
    zmq::socket_t socket(context, zmq::socket_type::dealer);
    socket.set(zmq::sockopt::linger, 0);
    socket.set(zmq::sockopt::rcvtimeo, request.timeout_ms);
    socket.set(zmq::sockopt::sndtimeo, request.timeout_ms);
    try {
        socket.connect(endpoint);
    } catch (const zmq::error_t& error) {
        throw UsageError("control endpoint '" + endpoint + "' cannot be used: " + error.what());
    }
    const std::string text = Json{{"command", request.command}}.dump();
    zmq::message_t reply;
    if (!socket.send(zmq::buffer(text), zmq::send_flags::none) || !socket.recv(reply)) {
        throw RunError("no coordinator answers at " + endpoint +
                       ": is it running under this --name?");
    }
    Json answer = Json::parse(reply.to_string_view(), nullptr, false);
    if (!answer.is_object() || !answer.contains("ok") || !answer["ok"].is_boolean()) {
        throw RunError("the answer from " + endpoint + " is not a coordinator's");
    }
    if (!answer["ok"].get<bool>()) {
        throw RunError("refused (" + answer["error"].value("name", "?") +
                       "): " + answer["error"].value("message", "?"));
    }
    return answer["result"];
}

void print_status(const Json& status) {
    const Json& frames = status.at("frames");
    std::printf("frames   in %lu  done %lu  in flight %lu  dropped %s\n",
                frames.at("in").get<unsigned long>(), frames.at("done").get<unsigned long>(),
                frames.at("in_flight").get<unsigned long>(), frames.at("dropped").dump().c_str());
    std::printf("spectra  %lu   real-time factor %.3f   ring %.0f %% full\n",
                status.at("spectra").at("out").get<unsigned long>(),
                status.at("realtime_factor").get<double>(),
                100 * status.at("ring_fill").get<double>());
    const Json& time = status.at("frame_us");
    std::printf("frame    period %.1f us  core %.1f us  latency P50 %.0f  P99 %.0f us\n",
                time.at("period").get<double>(), time.at("core").get<double>(),
                time.at("latency").at("p50").get<double>(),
                time.at("latency").at("p99").get<double>());
    for (const Json& worker : status.at("workers")) {
        std::printf("worker %-4d pid %-8d cpu %-4s %-18s blocks %-10lu busy %.2f s\n",
                    worker.at("id").get<int>(), worker.at("pid").get<int>(),
                    worker.at("cpu").dump().c_str(), worker.at("state").get<std::string>().c_str(),
                    worker.at("blocks").get<unsigned long>(), worker.at("busy_s").get<double>());
    }
}

void carry_out(const Request& request) {
    const Json result = ask(request);
    if (request.as_json) {
        std::printf("%s\n", result.dump(2).c_str());
    } else if (request.command == "status") {
        print_status(result);
    } else {
        std::printf("%s\n", result.dump().c_str());
    }
}

// Returns nothing when help or the version was printed.
std::optional<Request> parse(int argc, char** argv) {
    Request request;
    CLI::App app("Asks and steers a running echelle-coordinator.", "echellectl");
    app.set_version_flag("--version", std::string("echellectl ") + ECHELLE_VERSION);
    app.add_option("--name", request.name, "Instance name (echelle)");
    app.add_option("--control", request.endpoint, "Control endpoint, instead of the instance's");
    app.add_flag("--json", request.as_json, "Print the answer as JSON");
    app.add_option("command", request.command, "status or stop")->required();
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        std::fputs(app.help().c_str(), stdout);
        return std::nullopt;
    } catch (const CLI::CallForVersion&) {
        std::printf("echellectl %s\n", ECHELLE_VERSION);
        return std::nullopt;
    } catch (const CLI::Error& error) {
        throw UsageError(std::string(error.what()) + " (see --help)");
    }
    return request;
}

}  // namespace

int main(int argc, char** argv) {
    using echelle::ExitCode;
    ExitCode code = ExitCode::done;
    try {
        if (const auto request = parse(argc, argv)) {
            carry_out(*request);
        }
    } catch (const UsageError& error) {
        std::fprintf(stderr, "echellectl: %s\n", error.what());
        code = ExitCode::wrong_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "echellectl: %s\n", error.what());
        code = ExitCode::failed_while_running;
    }
    return static_cast<int>(code);
}
