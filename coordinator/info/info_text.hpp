// The lines that echelle-info prints, from what it knows.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace echelle {

std::string info_text(const nlohmann::ordered_json& info);

}  // namespace echelle
