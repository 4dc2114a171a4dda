// The commands of echellectl: what each asks of the run, and which requests are refused. Main
// thread only.
#pragma once

#include <functional>

#include "common/ledger.hpp"
#include "coordinator/capture/frame_capture.hpp"
#include "coordinator/control.hpp"
#include "coordinator/preparation.hpp"
#include "coordinator/report.hpp"
#include "coordinator/supervisor.hpp"

namespace echelle {

struct CommandTargets {
    const RunFacts* facts = nullptr;
    const Preparation* run = nullptr;
    Ledger* ledger = nullptr;
    Supervisor* supervisor = nullptr;
    FrameCapture* capture = nullptr;  // null: none was asked for
    std::function<void()> stop;
    std::function<void()> wake_workers;
};

// Registers status, stop, scale, drain, pause, resume and capture.
void add_commands(Control& control, const CommandTargets& targets);

}  // namespace echelle
