// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "sim/units/hash.h"
#include "workloads/requests/open_arrivals.h"

namespace orrery {
namespace {

struct Poisson final : OpenArrivals {
  Poisson() { arrival = "poisson"; }

  double gap(std::uint64_t& state) const override { return -std::log(next_uniform(state)); }

  static const config::Schema<Poisson>& schema() {
    static const config::Schema<Poisson> schema =
        open_arrivals_schema<Poisson>("poisson", "arrivals at random with a mean rate");
    return schema;
  }
};

const config::Registered<RequestSourceConfig>::Add<Poisson> added_poisson(
    "poisson", "arrivals at random with a mean rate");

}  // namespace
}  // namespace orrery
