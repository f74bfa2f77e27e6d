// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/expert_exchange_config.h"

#include "sim/config/schema.h"

namespace orrery {

using config::between;
using config::Bounds;
using config::Schema;

const Schema<ExpertExchangeConfig>& ExpertExchangeConfig::schema() {
  using C = ExpertExchangeConfig;
  static const Bounds time = between(Seconds(0), Seconds(1));
  static const Bounds fraction = between(1e-3, 1);
  static const auto schema =
      Schema<C>("expert_exchange", "kernels that take tokens to their experts and back")
          .required("dispatch_start", &C::dispatch_start,
                    "launch, choice of destinations, hand-shake with the peers [us]", time)
          .optional("dispatch_floor", &C::dispatch_floor,
                    "least time of the transfer that follows, however few tokens [us]", time)
          .required("combine_start", &C::combine_start, "start of the way back [us]", time)
          .optional("combine_floor", &C::combine_floor, "least time of the way back [us]", time)
          .optional("crossing", &C::crossing,
                    "more for either, once, where the ranks are on several nodes: counts, tokens "
                    "and flags that wait for one another over more switches [us]",
                    time)
          .required("normal_efficiency", &C::normal_efficiency,
                    "share of the scale-up line rate where a token goes once to each rank",
                    fraction)
          .required("low_latency_efficiency", &C::low_latency_efficiency,
                    "share of the scale-up line rate where each copy goes to its expert", fraction)
          .required("scale_out_efficiency", &C::scale_out_efficiency,
                    "share of the line rate of the NICs", fraction)
          .optional("units", &C::units, "SMs that the kernels hold while they run",
                    between(0, 1e4));
  return schema;
}

}  // namespace orrery
