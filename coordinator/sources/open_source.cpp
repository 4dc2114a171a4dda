#include <array>
#include <utility>

#include "common/error.hpp"
#include "coordinator/sources/raw_source.hpp"
#include "coordinator/sources/ring_source.hpp"
#include "coordinator/sources/sigmf_source.hpp"
#include "coordinator/sources/sim_source.hpp"
#include "coordinator/sources/source.hpp"

namespace echelle {
namespace {

struct Scheme {
    const char* name;
    std::unique_ptr<Source> (*open)(SourceUri uri, const StreamOptions& options);
};

constexpr std::array schemes = {
    Scheme{"sim", open_sim_source},
    Scheme{"ring", open_ring_source},
    Scheme{"raw", open_raw_source},
    Scheme{"sigmf", open_sigmf_source},
};

}  // namespace

std::unique_ptr<Source> open_source(SourceUri uri, const StreamOptions& options) {
    std::string known;
    for (const Scheme& scheme : schemes) {
        if (uri.scheme() == scheme.name) {
            return scheme.open(std::move(uri), options);
        }
        known += (known.empty() ? "" : ", ") + std::string(scheme.name) + ":";
    }
    throw UsageError("source '" + uri.text() + "' has the unknown scheme '" + uri.scheme() +
                     "': the known ones are " + known);
}

}  // namespace echelle
