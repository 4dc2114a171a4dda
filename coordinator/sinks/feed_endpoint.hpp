// What may stand after --feed: see docs/feed.md.
#pragma once

#include <string>

namespace echelle {

// Whether an endpoint is tcp, and then whether others than this machine reach it.
bool is_tcp(const std::string& endpoint);
bool leaves_machine(const std::string& endpoint);

// Throws UsageError unless the endpoint is ipc:// or tcp:// and can be bound without harm: libzmq
// replaces whatever file stands at an ipc path, a live socket or somebody's data included.
void check_feed_endpoint(const std::string& endpoint);

}  // namespace echelle
