// echellectl: asks a running coordinator for its status, scales, pauses or stops it, over its
// control endpoint. Exit codes: 0 done; 1 refused or no answer; 2 wrong usage.
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <zmq.hpp>

#include "clients/ctl/keys.hpp"
#include "clients/ctl/status_page.hpp"
#include "common/error.hpp"
#include "common/instance.hpp"
#include "common/standard_output.hpp"

namespace {

using Json = nlohmann::ordered_json;
using echelle::RunError;
using echelle::UsageError;

struct Request {
    std::string name = echelle::default_instance_name;
    std::string endpoint;
    std::string command;
    std::string key_name;             // of `keys`
    Json arguments = Json::object();  // beside the command
    bool as_json = false;
    int timeout_ms = 2000;
};

std::string endpoint_of(const Request& request) {
    return request.endpoint.empty() ? echelle::control_endpoint(request.name) : request.endpoint;
}

Json ask(const Request& request) {
    const std::string endpoint = endpoint_of(request);
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
    Json message = request.arguments;
    message["command"] = request.command == "top" ? "status" : request.command;
    const std::string text = message.dump();
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

// Whether the coordinator's socket has been removed, where it is a file.
bool is_gone(const Request& request) {
    constexpr std::string_view scheme = "ipc://";
    const std::string endpoint = endpoint_of(request);
    return endpoint.starts_with(scheme) && access(endpoint.c_str() + scheme.size(), F_OK) != 0;
}

void carry_out(const Request& request) {
    if (request.command == "keys") {
        echelle::make_key_files(request.key_name);
        return;
    }
    if (request.command == "top") {
        echelle::watch_top([&request] { return ask(request); },
                           [&request] { return is_gone(request); });
        return;
    }
    const Json result = ask(request);
    if (!request.as_json && request.command == "status") {
        echelle::write_standard_output(echelle::status_page(result));
    } else {
        echelle::write_standard_output(result.dump(request.as_json ? 2 : -1) + "\n");
    }
}

struct Arguments {
    unsigned int number = 0;  // of "scale N" and "drain ID"
    std::string action;       // of "capture ACTION [SECONDS]"
    std::optional<double> seconds;
};

void declare_commands(CLI::App& app, Request& request, Arguments& arguments) {
    const auto add = [&](const char* name, const char* help) {
        CLI::App* command = app.add_subcommand(name, help);
        command->callback([&request, name] { request.command = name; });
        return command;
    };
    add("status", "What the run has done and does");
    add("top", "The same as a live view; ends with q or Ctrl-C");
    add("scale", "Have N workers from now on")->add_option("N", arguments.number)->required();
    add("drain", "Let worker ID finish its block and leave")
        ->add_option("ID", arguments.number)
        ->required();
    add("pause", "Workers claim nothing more");
    add("resume", "They go on");
    CLI::App* capture = add("capture", "Keep incoming frames: start, stop, last SECONDS");
    capture
        ->add_option("ACTION", arguments.action, "start, stop, or last: what the ring still holds")
        ->required()
        ->check(CLI::IsMember({"start", "stop", "last"}));
    capture->add_option("SECONDS", arguments.seconds, "How much of the past, with last");
    add("stop", "Finish what is in flight, write the report, end");
    add("keys", "Make NAME.key and NAME.pub, for feeds by tcp")
        ->add_option("NAME", request.key_name)
        ->required();
    app.require_subcommand(1);
}

Json capture_arguments(const Arguments& arguments) {
    Json request = {{"action", arguments.action}};
    const bool is_last = arguments.action == "last";
    if (is_last != arguments.seconds.has_value()) {
        throw UsageError(is_last ? "capture last needs SECONDS: how much of the past to keep"
                                 : "capture " + arguments.action + " takes no SECONDS");
    }
    if (is_last && !(*arguments.seconds > 0)) {
        throw UsageError("capture last needs more than 0 SECONDS");
    }
    if (is_last) {
        request["seconds"] = *arguments.seconds;
    }
    return request;
}

// Returns nothing when help or the version was printed.
std::optional<Request> parse(int argc, char** argv) {
    Request request;
    CLI::App app("Asks and steers a running echelle-coordinator.", "echellectl");
    app.set_version_flag("--version", std::string("echellectl ") + ECHELLE_VERSION);
    app.add_option("--name", request.name, "Instance name (echelle)");
    app.add_option("--control", request.endpoint, "Control endpoint, instead of the instance's");
    app.add_flag("--json", request.as_json, "Print the answer as JSON");
    Arguments arguments;
    declare_commands(app, request, arguments);
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        echelle::write_standard_output(app.help());
        return std::nullopt;
    } catch (const CLI::CallForVersion&) {
        echelle::write_standard_output("echellectl " ECHELLE_VERSION "\n");
        return std::nullopt;
    } catch (const CLI::RequiredError& error) {
        const std::vector<std::string> unknown = app.remaining();
        throw UsageError(
            (unknown.empty() ? error.what() : "there is no command '" + unknown.front() + "'") +
            std::string(" (see --help)"));
    } catch (const CLI::Error& error) {
        throw UsageError(std::string(error.what()) + " (see --help)");
    }
    if (request.command == "scale") {
        request.arguments["workers"] = arguments.number;
    } else if (request.command == "drain") {
        request.arguments["id"] = arguments.number;
    } else if (request.command == "capture") {
        request.arguments = capture_arguments(arguments);
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
