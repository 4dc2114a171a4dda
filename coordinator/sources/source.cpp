#include "coordinator/sources/source.hpp"

#include <nlohmann/json.hpp>

namespace echelle {

nlohmann::json Source::facts() const {
    return nullptr;
}

void Source::prepare(Ring& /*ring*/, const std::atomic<bool>& /*stop*/) {}

}  // namespace echelle
