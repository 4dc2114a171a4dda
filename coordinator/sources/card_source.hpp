// xdma:PATH?header=none&tlast=&timeout=&reopen=no&channels=&samples=&rate=&format=&layout=
//
// Frames from a capture card's character device, or from any other device node, FIFO or file that
// gives the same bytes. docs/capture-cards.md describes the keys and the frames.
#pragma once

#include <memory>

#include "coordinator/sources/source.hpp"

namespace echelle {

// Opens the device and waits for the first header, for the time-out at most. Throws UsageError;
// also when keys or options contradict the header.
std::unique_ptr<Source> open_card_source(SourceUri uri, const StreamOptions& options);

}  // namespace echelle
