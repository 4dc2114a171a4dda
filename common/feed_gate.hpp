// Who may subscribe by tcp: answers libzmq's questions about each connection (ZAP,
// rfc.zeromq.org/spec/27) from the list of public keys.
//
// Owned and called by the thread that owns the feed's socket, in the context of that socket.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <set>
#include <string>

#include <zmq.hpp>

namespace echelle {

class FeedGate {
  public:
    // Binds ZAP's endpoint of this context; to be made before the feed's socket is bound. Throws
    // UsageError when the list cannot be read. `warn` is told when a changed list cannot be read.
    using Warn = std::function<void(const std::string&)>;
    FeedGate(zmq::context_t& context, const std::string& allow_path, Warn warn);

    zmq::socket_t& socket() { return socket_; }
    // Answers what has been asked; true when anything was.
    bool answer();
    uint64_t turned_away() const { return turned_away_; }

  private:
    bool is_allowed(const std::string& key);
    // Reads the list again when the file has changed. What cannot be read leaves the list as it
    // was.
    void refresh();

    zmq::socket_t socket_;
    std::string path_;
    Warn warn_;
    timespec modified_{};
    std::set<std::string> allowed_;
    uint64_t turned_away_ = 0;
};

}  // namespace echelle
