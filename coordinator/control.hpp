// Control: answers `echellectl` on a ROUTER socket, JSON over ZeroMQ (docs/operations.md).
//
// A request is {"command": NAME, ...}; the answer {"ok": true, "result": ...} or
// {"ok": false, "error": {"name": ..., "message": ...}}. Bad requests are answered with a named
// error; nothing that comes in can stop the data path. Main thread only.
#pragma once

#include <functional>
#include <map>
#include <string>

#include <nlohmann/json.hpp>
#include <zmq.hpp>

namespace echelle {

// What a handler throws to refuse a request.
class ControlRefusal : public std::runtime_error {
  public:
    ControlRefusal(std::string name, const std::string& message)
        : std::runtime_error(message), name_(std::move(name)) {}
    const std::string& name() const { return name_; }

  private:
    std::string name_;
};

class Control {
  public:
    using Handler = std::function<nlohmann::ordered_json(const nlohmann::json& request)>;

    // Binds. Throws UsageError when the endpoint cannot be used.
    Control(zmq::context_t& context, const std::string& endpoint);

    void on(const std::string& command, Handler handler) {
        handlers_[command] = std::move(handler);
    }
    zmq::socket_t& socket() { return socket_; }
    // Answers what has come, without waiting.
    void handle_requests();

  private:
    std::string answer(std::string_view request) const;

    zmq::socket_t socket_;
    std::map<std::string, Handler> handlers_;
};

}  // namespace echelle
