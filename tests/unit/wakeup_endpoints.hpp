// Endpoints for a test's sockets, in a directory of its own that goes with the object.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include <unistd.h>

#include "common/wakeup.hpp"

namespace echelle {

class EndpointDirectory {
  public:
    EndpointDirectory() {
        if (mkdtemp(path_) == nullptr) {
            throw std::runtime_error("cannot make a directory in /tmp");
        }
    }
    EndpointDirectory(const EndpointDirectory&) = delete;
    EndpointDirectory& operator=(const EndpointDirectory&) = delete;
    ~EndpointDirectory() {
        unlink(file("tokens").c_str());
        unlink(file("notices").c_str());
        rmdir(path_);
    }

    std::string file(const std::string& name) const { return std::string(path_) + "/" + name; }
    WakeupEndpoints endpoints() const {
        return {"ipc://" + file("tokens"), "ipc://" + file("notices")};
    }

  private:
    char path_[32] = "/tmp/echelle-wakeup-XXXXXX";
};

}  // namespace echelle
