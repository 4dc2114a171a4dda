// Keeps an assertion inside libmosquitto from ending the process.
//
// libmosquitto 2.0.11 asserts while it reads: a broker that sends a property of MQTT 5 which the
// library does not know ends whoever uses it ("log__printf: Assertion `mosq' failed"). The C
// library calls __assert_fail then; the program's own one, defined here, leaves the call instead.
//
// What was being worked on is in an unknown state afterwards and must not be used or destroyed.
#pragma once

namespace echelle::mqtt {

// Calls function(argument), which must be C all the way down to where it may assert. True when it
// returned (`result` is set), false when an assertion failed in it. Any thread.
bool survives_assertion(int (*function)(void*), void* argument, int& result);

}  // namespace echelle::mqtt
