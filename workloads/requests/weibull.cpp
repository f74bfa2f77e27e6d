// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/units/hash.h"
#include "workloads/requests/open_arrivals.h"

namespace orrery {
namespace {

struct Weibull final : OpenArrivals {
  Weibull() { arrival = "weibull"; }

  double gap(std::uint64_t& state) const override {
    return std::pow(-std::log(next_uniform(state)), 1 / shape) / std::tgamma(1 + 1 / shape);
  }

  double shape = 1;

  static const config::Schema<Weibull>& schema() {
    static const config::Schema<Weibull> schema =
        open_arrivals_schema<Weibull>("weibull", "gaps of a Weibull distribution")
            .optional("shape", &Weibull::shape,
                      "shape of the gaps: 1 is Poisson, less comes in bursts",
                      config::between(0.1, 100));
    return schema;
  }
};

const config::Registered<RequestSourceConfig>::Add<Weibull> added_weibull(
    "weibull", "gaps of a Weibull distribution");

}  // namespace
}  // namespace orrery
