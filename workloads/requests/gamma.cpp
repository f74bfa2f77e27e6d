// SPDX-License-Identifier: Apache-2.0
#include <boost/math/special_functions/gamma.hpp>

#include "sim/units/hash.h"
#include "workloads/requests/open_arrivals.h"

namespace orrery {
namespace {

struct Gamma final : OpenArrivals {
  Gamma() { arrival = "gamma"; }

  double gap(std::uint64_t& state) const override {
    return boost::math::gamma_p_inv(burstiness, next_uniform(state)) / burstiness;
  }

  double burstiness = 1;

  static const config::Schema<Gamma>& schema() {
    static const config::Schema<Gamma> schema =
        open_arrivals_schema<Gamma>("gamma", "gaps of a gamma distribution")
            .optional("burstiness", &Gamma::burstiness,
                      "shape of the gaps, as vLLM's benchmark calls it: 1 is Poisson, less comes "
                      "in bursts, more is even",
                      config::between(0.05, 1000));
    return schema;
  }
};

const config::Registered<RequestSourceConfig>::Add<Gamma> added_gamma(
    "gamma", "gaps of a gamma distribution");

}  // namespace
}  // namespace orrery
