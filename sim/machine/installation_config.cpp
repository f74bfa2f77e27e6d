// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/installation_config.h"

#include "sim/config/schema.h"

namespace orrery {

using config::between;
using config::Schema;

const Schema<ListedPeakConfig>& ListedPeakConfig::schema() {
  using C = ListedPeakConfig;
  static const auto rates = between(FlopsPerSecond(0), FlopsPerSecond(1e21));
  static const auto schema =
      Schema<C>("fp64_peak", "the fp64 peak of the machine, as lists count it from the parts")
          .required("unit_flops", &C::unit_flops,
                    "fp64 FLOP of one unit of an accelerator in a clock", between(1, 1e6))
          .required("processors", &C::processors,
                    "fp64 peak of all processors of one system [FLOP/s]", rates)
          .optional("clock", &C::clock,
                    "clock of the units that the list counts with [MHz]; absent: the "
                    "accelerator's",
                    between(Hertz(1e6), Hertz(1e10)))
          .optional("published", &C::published, "Rpeak of the whole machine [FLOP/s]", rates);
  return schema;
}

const Schema<InstallationConfig>& InstallationConfig::schema() {
  using C = InstallationConfig;
  static const auto schema =
      Schema<C>("installation", "the machine that was built of copies of a system")
          .required("name", &C::name, "what people call the machine")
          .required("systems", &C::systems, "copies of the system in it", between(1, 1e7))
          .optional("processors", &C::processors,
                    "design power of the processors of one system that accelerators do not "
                    "include [W]",
                    between(Watts(0), Watts(1e6)))
          .optional("power", &C::power, "power of the whole machine at load, as published [W]",
                    between(Watts(1), Watts(1e11)))
          .optional("cost", &C::cost, "price of the whole machine [USD]", between(1, 1e13))
          .optional(
              "fp64_peak", &C::fp64_peak,
              "fp64 peak of the machine, as lists count it from the parts; absent: not listed");
  return schema;
}

}  // namespace orrery
