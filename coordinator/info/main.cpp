// echelle-info: says what a recording of samples, packets or spectra is, and what is wrong with it.
// Exit codes: 0 it can be read; 1 the answer cannot be written; 2 it cannot be read, or wrong
// usage.
//
// It stands in the coordinator's room since it opens files as the coordinator's sources do.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "common/standard_output.hpp"
#include "coordinator/info/info_text.hpp"
#include "coordinator/info/packet_capture_info.hpp"
#include "coordinator/info/recording_info.hpp"
#include "coordinator/info/spectra_info.hpp"

namespace {

using Json = nlohmann::ordered_json;

std::string one_line(std::string text) {
    for (char& c : text) {
        c = c >= 0 && c < ' ' ? ' ' : c;
    }
    return text;
}

Json info_of(const std::string& file) {
    if (echelle::is_spectra_file(file)) {
        return echelle::spectra_info(file);
    }
    if (const auto path = echelle::packet_capture_path(file)) {
        return echelle::packet_capture_info(*path);
    }
    return echelle::recording_info(file);
}

// What is asked for.
std::string answer(int argc, char** argv) {
    std::string file;
    bool as_json = false;
    CLI::App app("Says what a recording of samples or of spectra is.", "echelle-info");
    app.set_version_flag("--version", std::string("echelle-info ") + ECHELLE_VERSION);
    app.add_option("FILE", file, "A file or folder, or a source like raw:FILE?channels=2&rate=48e3")
        ->required();
    app.add_flag("--json", as_json, "Print it as JSON");
    try {
        app.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
        return app.help();
    } catch (const CLI::CallForVersion&) {
        return "echelle-info " ECHELLE_VERSION "\n";
    } catch (const CLI::Error& error) {
        throw echelle::UsageError(one_line(error.what()) + " (see --help)");
    }
    const Json info = info_of(file);
    return as_json ? info.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                   : echelle::info_text(info);
}

}  // namespace

int main(int argc, char** argv) {
    using echelle::ExitCode;
    const auto refuse = [](const std::exception& error, ExitCode code) {
        std::fprintf(stderr, "echelle-info: %s\n", error.what());
        return static_cast<int>(code);
    };
    std::string text;
    try {
        text = answer(argc, argv);
    } catch (const std::exception& error) {
        // Also what goes wrong while a file is read: here it means that it cannot be.
        return refuse(error, ExitCode::wrong_usage);
    }
    try {
        echelle::write_standard_output(text);
    } catch (const std::exception& error) {
        return refuse(error, ExitCode::failed_while_running);
    }
    return static_cast<int>(ExitCode::done);
}
