// echelle-coordinator: parses the command line, runs, and turns the outcome into an exit code.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>

#include "common/error.hpp"
#include "common/standard_output.hpp"
#include "coordinator/log.hpp"
#include "coordinator/nursery_exec.hpp"
#include "coordinator/options.hpp"
#include "coordinator/run.hpp"

int main(int argc, char** argv) {
    using echelle::ExitCode;
    // A reader of our recording or our standard output may leave: that is an error of a write.
    std::signal(SIGPIPE, SIG_IGN);
    // A limit on file size likewise: EFBIG instead of a death.
    std::signal(SIGXFSZ, SIG_IGN);
    ExitCode code = ExitCode::done;
    try {
        if (argc == 3 && std::string_view(argv[1]) == echelle::nursery_argument) {
            echelle::become_nursery(argv[2]);
        }
        const echelle::ParsedOptions parsed = echelle::parse_options(argc, argv);
        echelle::set_log(parsed.options.log_format, parsed.options.log_level);
        if (parsed.run) {
            code = echelle::run_coordinator(parsed.options);
        } else {
            echelle::write_standard_output(parsed.text);
        }
    } catch (const echelle::UsageError& error) {
        echelle::tell_error(error.what());
        code = ExitCode::wrong_usage;
    } catch (const std::exception& error) {
        echelle::tell_error(std::string("failed: ") + error.what());
        code = ExitCode::failed_while_running;
    }
    return static_cast<int>(code);
}
