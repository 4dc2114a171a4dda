// CURVE keys (rfc.zeromq.org/spec/26) in files: who a tcp feed is, and who may subscribe to it.
// docs/feed.md states the file's form. Any thread.
#pragma once

#include <optional>
#include <set>
#include <string>

namespace echelle {

struct CurveKeys {
    std::string public_key;  // Z85, 40 characters
    std::string secret_key;
};

// A new pair. Throws RunError where libzmq was built without CURVE.
CurveKeys make_curve_keys();

// Writes NAME.key (both keys, mode 0600) and NAME.pub. Throws UsageError when either exists already
// or cannot be made.
void write_curve_keys(const std::string& name, const CurveKeys& keys);

// Reads a file with a secret key. Throws UsageError, also when others may read it.
CurveKeys read_secret_keys(const std::string& path);

// The public keys of a file, each 32 bytes as ZAP gives them. Throws UsageError.
std::set<std::string> read_public_keys(const std::string& path);

}  // namespace echelle
