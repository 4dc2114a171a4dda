#include "clients/ctl/keys.hpp"

#include "common/curve_keys.hpp"
#include "common/standard_output.hpp"

namespace echelle {

void make_key_files(const std::string& name) {
    const CurveKeys keys = make_curve_keys();
    write_curve_keys(name, keys);
    write_standard_output(name + ".key  secret, for whom it stands for alone\n" + name +
                          ".pub  public " + keys.public_key + "\n");
}

}  // namespace echelle
