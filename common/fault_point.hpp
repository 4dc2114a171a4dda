// Fault points: named places where a test build can be told to die or stop, so that tests can walk
// every transition of the ledger. Nothing at all in a release build (ECHELLE_FAULT_POINTS
// undefined).
//
// A test says ECHELLE_FAULT="NAME=ACTION[@COUNT[:WORKER]]" in the environment: at the COUNT-th time
// (1 if absent) that a process passes the point NAME, it does ACTION: `kill` (SIGKILL itself) or
// `stop` (SIGSTOP itself). With :WORKER only that worker id does, and only in its first life,
// unless the count is written `every`: then each life of it does, which is how a poison block is
// made.
#pragma once

#ifdef ECHELLE_FAULT_POINTS
namespace echelle {
// Called by ECHELLE_FAULT_POINT. Cheap enough for a test build; any process, any thread.
void pass_fault_point(const char* name);
// Tells the process's fault points which worker it is and in which life.
void set_fault_identity(unsigned int worker, unsigned int incarnation);
}  // namespace echelle
#define ECHELLE_FAULT_POINT(name) ::echelle::pass_fault_point(name)
#define ECHELLE_FAULT_IDENTITY(worker, incarnation) \
    ::echelle::set_fault_identity(worker, incarnation)
#else
#define ECHELLE_FAULT_POINT(name) static_cast<void>(0)
#define ECHELLE_FAULT_IDENTITY(worker, incarnation) static_cast<void>(0)
#endif
