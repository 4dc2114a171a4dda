// echelle-mqtt: publishes band powers, peaks, health and spectra of a running coordinator to an
// MQTT broker. Exit codes: 0 done; 1 failed while running; 2 wrong usage.
#include <cstdio>
#include <exception>
#include <utility>

#include "clients/mqtt/options.hpp"
#include "clients/mqtt/run.hpp"
#include "common/error.hpp"

int main(int argc, char** argv) {
    using echelle::ExitCode;
    ExitCode code = ExitCode::done;
    try {
        echelle::mqtt::ParsedOptions parsed = echelle::mqtt::parse_options(argc, argv);
        if (parsed.run) {
            code = echelle::mqtt::run_gateway(std::move(parsed.options));
        } else {
            std::fputs(parsed.text.c_str(), stdout);
        }
    } catch (const echelle::UsageError& error) {
        std::fprintf(stderr, "echelle-mqtt: %s\n", error.what());
        code = ExitCode::wrong_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "echelle-mqtt: failed: %s\n", error.what());
        code = ExitCode::failed_while_running;
    }
    return static_cast<int>(code);
}
