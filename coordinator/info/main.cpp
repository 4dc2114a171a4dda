// echelle-info: says what a recording of samples or of spectra is, and what is wrong with it. Exit
// codes: 0 it can be read; 2 it cannot, or wrong usage.
//
// It stands in the coordinator's room since it opens files as the coordinator's sources do.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "common/error.hpp"
#include "coordinator/info/info_text.hpp"
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

int tell(int argc, char** argv) {
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
        std::fputs(app.help().c_str(), stdout);
        return 0;
    } catch (const CLI::CallForVersion&) {
        std::printf("echelle-info %s\n", ECHELLE_VERSION);
        return 0;
    } catch (const CLI::Error& error) {
        throw echelle::UsageError(one_line(error.what()) + " (see --help)");
    }
    const Json info = echelle::is_spectra_file(file) ? echelle::spectra_info(file)
                                                     : echelle::recording_info(file);
    const std::string text = as_json
                                 ? info.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"
                                 : echelle::info_text(info);
    std::fputs(text.c_str(), stdout);
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return tell(argc, argv);
    } catch (const std::exception& error) {
        // Also what goes wrong while a file is read: here it means that it cannot be.
        std::fprintf(stderr, "echelle-info: %s\n", error.what());
        return static_cast<int>(echelle::ExitCode::wrong_usage);
    }
}
