#include "common/feed_gate.hpp"

#include <utility>
#include <vector>

#include <sys/stat.h>

#include "common/curve_keys.hpp"
#include "common/error.hpp"

namespace echelle {
namespace {

constexpr int most_at_once = 64;
// The parts of a request: version, request id, domain, address, identity, mechanism, credentials.
constexpr size_t id_part = 1;
constexpr size_t mechanism_part = 5;
constexpr size_t key_part = 6;

timespec modification_of(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 ? status.st_mtim : timespec{};
}

}  // namespace

FeedGate::FeedGate(zmq::context_t& context, const std::string& allow_path, Warn warn)
    : socket_(context, zmq::socket_type::rep),
      path_(allow_path),
      warn_(std::move(warn)),
      modified_(modification_of(allow_path)),
      allowed_(read_public_keys(allow_path)) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("inproc://zeromq.zap.01");
}

void FeedGate::refresh() {
    const timespec now = modification_of(path_);
    if (now.tv_sec == modified_.tv_sec && now.tv_nsec == modified_.tv_nsec) {
        return;
    }
    modified_ = now;
    try {
        allowed_ = read_public_keys(path_);
    } catch (const UsageError& error) {
        warn_(std::string("the list of who may subscribe stays as it was: ") + error.what());
    }
}

bool FeedGate::is_allowed(const std::string& key) {
    refresh();
    const bool allowed = allowed_.contains(key);
    turned_away_ += allowed ? 0 : 1;
    return allowed;
}

bool FeedGate::answer() {
    bool any = false;
    for (int i = 0; i < most_at_once; ++i) {
        std::vector<std::string> request;
        zmq::message_t part;
        do {
            if (!socket_.recv(part, zmq::recv_flags::dontwait)) {
                return any;
            }
            request.push_back(part.to_string());
        } while (part.more());
        any = true;
        const bool is_curve = request.size() > key_part && request[mechanism_part] == "CURVE";
        const bool allowed = is_curve && is_allowed(request[key_part]);
        const std::string id = request.size() > id_part ? request[id_part] : "";
        for (const std::string& text :
             {std::string("1.0"), id, std::string(allowed ? "200" : "400"),
              std::string(allowed ? "OK" : "not on the list"), std::string()}) {
            socket_.send(zmq::buffer(text), zmq::send_flags::sndmore);
        }
        socket_.send(zmq::message_t(), zmq::send_flags::none);  // no metadata
    }
    return any;
}

}  // namespace echelle
