// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/bulk_config.h"

#include "sim/config/schema.h"

namespace orrery {

using config::between;
using config::Bounds;
using config::Schema;
using namespace literals;

const Schema<BulkConfig>& BulkConfig::schema() {
  using C = BulkConfig;
  static const Bounds time = between(Seconds(0), Seconds(1));
  static const Bounds fraction = between(1e-3, 1);
  static const auto schema =
      Schema<C>("bulk", "how large buffers are moved inside a system")
          .required("from", &C::from, "smallest buffer [MiB]", between(1_B, 1000_TB))
          .required("start", &C::start, "start of a collective, once, in place of launch [us]",
                    time)
          .required("peer", &C::peer, "each other rank of the group in its node [us]", time)
          .required("efficiency", &C::efficiency, "payload share of the line rate", fraction)
          .required("sum_efficiency", &C::sum_efficiency,
                    "payload share of the line rate where bytes are summed", fraction);
  return schema;
}

}  // namespace orrery
