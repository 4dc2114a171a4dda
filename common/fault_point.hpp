// Fault points: named places where a test build can be told to die or stop, so that tests can walk
// every transition of the ledger. Nothing at all in a release build (ECHELLE_FAULT_POINTS
// undefined).
//
// A test says ECHELLE_FAULT="NAME=ACTION[@COUNT]" in the environment: each process that passes the
// point NAME for the COUNT-th time (1 if absent) does ACTION: `kill` (SIGKILL itself) or `stop`
// (SIGSTOP itself). A worker does so only in its first life, unless ACTION is `kill-always`. With
// NAME "worker.block=N", a worker dies of SIGSEGV whenever it computes block N: a poison block.
#pragma once

#ifdef ECHELLE_FAULT_POINTS
namespace echelle {
// Called by ECHELLE_FAULT_POINT. Cheap enough for a test build; any process, any thread.
void pass_fault_point(const char* name);
// Tells the process's fault points in which life of its worker it is.
void set_fault_incarnation(unsigned int incarnation);
// Dies when `block` is the poison block.
void pass_block_fault_point(unsigned long block);
}  // namespace echelle
#define ECHELLE_FAULT_POINT(name) ::echelle::pass_fault_point(name)
#define ECHELLE_FAULT_INCARNATION(incarnation) ::echelle::set_fault_incarnation(incarnation)
#define ECHELLE_BLOCK_FAULT_POINT(block) ::echelle::pass_block_fault_point(block)
#else
#define ECHELLE_FAULT_POINT(name) static_cast<void>(0)
#define ECHELLE_FAULT_INCARNATION(incarnation) static_cast<void>(0)
#define ECHELLE_BLOCK_FAULT_POINT(block) static_cast<void>(0)
#endif
