// The status of a run as text for people: one page, and a live view of it.
#pragma once

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace echelle {

// `status` is a coordinator's answer to "status". Throws nlohmann's exception when it is not.
std::string status_page(const nlohmann::ordered_json& status);

// Asks and shows again and again until the run ends, or the user types q or Ctrl-C; on a pipe,
// once.
// `is_gone` says whether there is nobody left to ask: a coordinator on a very busy machine may miss
// an answer and go on.
void watch_top(const std::function<nlohmann::ordered_json()>& ask,
               const std::function<bool()>& is_gone);

}  // namespace echelle
