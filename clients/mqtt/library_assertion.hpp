// Keeps an assertion inside libmosquitto from ending the process.
//
// libmosquitto 2.0.11 asserts while it reads: a broker that sends a property of MQTT 5 which the
// library does not know ends whoever uses it ("log__printf: Assertion `mosq' failed"). The C
// library calls __assert_fail then; the program's own one, defined here, leaves the call instead.
//
// That assertion stands where the library holds no lock and its client can still be destroyed.
// After any other, what was being worked on must not be touched again.
#pragma once

namespace echelle::mqtt {

enum class Outcome { returned, failed_while_logging, failed_elsewhere };

// Calls function(argument), which must be C all the way down to where it may assert; `result` is
// what it returned. Any thread.
Outcome survive_assertion(int (*function)(void*), void* argument, int& result);

}  // namespace echelle::mqtt
