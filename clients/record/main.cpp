// echelle-record: the spectra of a running coordinator, or of a recording, into HDF5 files. Exit
// codes: 0 done; 1 failed while running; 2 wrong usage, or a file that cannot be used.
#include <csignal>
#include <cstdio>
#include <exception>

#include "clients/record/record_options.hpp"
#include "clients/record/recorder.hpp"
#include "common/error.hpp"

namespace {

// The second one ends it at once, as if it were killed.
void ask_for_end(int number) {
    echelle::record::stop_recording();
    std::signal(number, SIG_DFL);
}

void take_signals() {
    std::signal(SIGINT, ask_for_end);
    std::signal(SIGTERM, ask_for_end);
    // A limit on the file's size is then an error of a write.
    std::signal(SIGXFSZ, SIG_IGN);
    std::signal(SIGPIPE, SIG_IGN);
}

}  // namespace

int main(int argc, char** argv) {
    using echelle::ExitCode;
    ExitCode code = ExitCode::done;
    try {
        if (const auto options = echelle::record::parse_record_options(argc, argv)) {
            take_signals();
            echelle::record::record_spectra(*options);
        }
    } catch (const echelle::UsageError& error) {
        std::fprintf(stderr, "echelle-record: %s\n", error.what());
        code = ExitCode::wrong_usage;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "echelle-record: failed: %s\n", error.what());
        code = ExitCode::failed_while_running;
    }
    return static_cast<int>(code);
}
