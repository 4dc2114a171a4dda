// The status of a run as text for people: one page, and a live view of it.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace echelle {

// `status` is a coordinator's answer to "status". Throws nlohmann's exception when it is not.
std::string status_page(const nlohmann::ordered_json& status);

// Asks and shows again and again until the run ends or the user interrupts; on a pipe, once.
void watch_top(const std::function<nlohmann::ordered_json()>& ask);

}  // namespace echelle
