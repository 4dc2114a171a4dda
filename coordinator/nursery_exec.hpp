// A new nursery after the first one died. By then the coordinator has threads and a ZeroMQ context,
// so it must not fork one: it starts a fresh copy of its own program, which gets ring, ledger and
// socket as descriptors and everything else as one JSON argument. FFTW's wisdom travels along, so
// its plans are the very same and a recording stays the same to the bit.
#pragma once

#include <optional>
#include <string>

#include "coordinator/nursery.hpp"
#include "coordinator/preparation.hpp"

namespace echelle {

// The hidden first argument that makes the program a nursery.
inline constexpr const char* nursery_argument = "--as-nursery";

// Starts one. Main thread of the coordinator. Throws RunError.
Nursery exec_nursery(const Preparation& run);

// In the fresh program: takes over what `seed` (the JSON) describes and is a nursery from then on.
[[noreturn]] void become_nursery(const std::string& seed);

}  // namespace echelle
