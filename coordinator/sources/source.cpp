#include "coordinator/sources/source.hpp"

#include <nlohmann/json.hpp>

namespace echelle {

nlohmann::json Source::facts() const {
    return nullptr;
}

}  // namespace echelle
