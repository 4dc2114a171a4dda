#include "clients/ctl/keys.hpp"

#include <cstdio>

#include "common/curve_keys.hpp"

namespace echelle {

void make_key_files(const std::string& name) {
    const CurveKeys keys = make_curve_keys();
    write_curve_keys(name, keys);
    std::printf("%s.key  secret, for whom it stands for alone\n%s.pub  public %s\n", name.c_str(),
                name.c_str(), keys.public_key.c_str());
}

}  // namespace echelle
