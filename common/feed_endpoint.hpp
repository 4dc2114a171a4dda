// Where spectra may be published, and with which keys: see docs/feed.md. Any thread.
#pragma once

#include <string>
#include <vector>

namespace echelle {

// Whether an endpoint is tcp, and then whether others than this machine reach it.
bool is_tcp(const std::string& endpoint);
bool leaves_machine(const std::string& endpoint);

// Throws UsageError, which names `option`, unless the endpoint is ipc:// or tcp:// and can be bound
// without harm: libzmq replaces whatever file stands at an ipc path, a live socket or somebody's
// data included.
void check_feed_endpoint(const std::string& option, const std::string& endpoint);

// What is published at, as typed: OPTION, OPTION-key, OPTION-allow and OPTION-insecure.
struct FeedAccess {
    std::vector<std::string> endpoints;
    std::string key;  // path of a file, or empty
    std::string allow;
    bool insecure = false;
};

// Throws UsageError when an endpoint cannot be used, or would let strangers read.
void check_feed_access(const std::string& option, const FeedAccess& access);

}  // namespace echelle
