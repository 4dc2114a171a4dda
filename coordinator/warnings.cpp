#include "coordinator/warnings.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace echelle {

void warn(const std::string& message) {
    static const auto logger = [] {
        auto made = spdlog::stderr_logger_mt("echelle-coordinator");
        made->set_pattern("%n: %l: %v");
        return made;
    }();
    logger->warn(message);
}

}  // namespace echelle
