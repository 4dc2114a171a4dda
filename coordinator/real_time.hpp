// --realtime and --lock-memory: what a machine grants beyond the usual share of CPU and memory.
//
// Only those threads get a real-time priority that pass work on and then sleep: ingest, collector
// and their ZeroMQ threads. Workers, and a source that makes or reads frames, compute all the time:
// with such a priority they would keep everything else off their CPUs, ingest and the collector
// among it. Refusals are told once, and the run goes on without.
#pragma once

#include <string>

namespace echelle {

// Why this process may not give its threads SCHED_FIFO with `priority` (1 to 99); empty: it may.
std::string why_no_real_time(int priority);
// The calling thread. Only after why_no_real_time() has said nothing; a failure is a broken
// invariant then.
void make_this_thread_real_time(int priority);
// Keeps all pages that this process has mapped now, ring and ledger among them, in memory; what is
// mapped later is left alone. Says why not, or nothing.
std::string lock_memory();

}  // namespace echelle
