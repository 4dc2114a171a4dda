#include "coordinator/control.hpp"

#include <vector>

#include "common/error.hpp"

namespace echelle {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t longest_request = size_t{64} * 1024;
constexpr int most_at_once = 16;  // then the main loop has its turn again

std::string refusal(const std::string& name, const std::string& message) {
    return Json{{"ok", false}, {"error", {{"name", name}, {"message", message}}}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
}

// Nesting is bounded before parsing recurses over it; a request needs two levels.
bool is_nested_too_deep(std::string_view text) {
    int depth = 0;
    for (const char c : text) {
        depth += c == '[' || c == '{' ? 1 : 0;
        depth -= c == ']' || c == '}' ? 1 : 0;
        if (depth > 16) {
            return true;
        }
    }
    return false;
}

}  // namespace

Control::Control(zmq::context_t& context, const std::string& endpoint)
    : socket_(context, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 200);
    socket_.set(zmq::sockopt::maxmsgsize, int64_t{longest_request});
    try {
        socket_.bind(endpoint);
    } catch (const zmq::error_t& error) {
        throw UsageError("--control '" + endpoint + "' cannot be used: " + error.what());
    }
}

void Control::handle_requests() {
    for (int i = 0; i < most_at_once; ++i) {
        std::vector<zmq::message_t> parts;
        do {
            zmq::message_t part;
            if (!socket_.recv(part, zmq::recv_flags::dontwait)) {
                return;
            }
            parts.push_back(std::move(part));
        } while (parts.back().more());
        if (parts.size() < 2) {
            continue;
        }
        const std::string reply = answer(parts.back().to_string_view());
        // The identity, and an empty delimiter if the client sent one, go back as they came.
        parts.pop_back();
        try {
            for (zmq::message_t& envelope : parts) {
                socket_.send(envelope, zmq::send_flags::sndmore | zmq::send_flags::dontwait);
            }
            socket_.send(zmq::buffer(reply), zmq::send_flags::dontwait);
        } catch (const zmq::error_t&) {
            // The client has gone: nobody waits for the answer.
        }
    }
}

std::string Control::answer(std::string_view request) const {
    if (request.size() > longest_request || is_nested_too_deep(request)) {
        return refusal("bad-request", "a request is a small JSON object with a command");
    }
    const nlohmann::json parsed = nlohmann::json::parse(request, nullptr, false);
    if (!parsed.is_object() || !parsed.contains("command") || !parsed["command"].is_string()) {
        return refusal("bad-request", "a request is a JSON object with a string \"command\"");
    }
    const std::string command = parsed["command"].get<std::string>();
    const auto handler = handlers_.find(command);
    if (handler == handlers_.end()) {
        std::string known;
        for (const auto& [name, unused] : handlers_) {
            known += (known.empty() ? "" : ", ") + name;
        }
        return refusal("unknown-command", "there is no command '" + command + "'; known: " + known);
    }
    try {
        return Json{{"ok", true}, {"result", handler->second(parsed)}}.dump(
            -1, ' ', false, Json::error_handler_t::replace);
    } catch (const ControlRefusal& error) {
        return refusal(error.name(), error.what());
    } catch (const nlohmann::json::exception& error) {
        return refusal("bad-request", error.what());
    }
}

}  // namespace echelle
