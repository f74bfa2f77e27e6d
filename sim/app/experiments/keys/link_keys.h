// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/app/experiments/keys/enum_names.h"
#include "sim/app/pricing/machine_network.h"
#include "sim/config/declared.h"

namespace orrery {

/// Keys of experiments whose transfers cross links.
struct LinkKeys {
  std::vector<FaultConfig> faults;  ///< those of one time apply in order
  Recorded recorded = Recorded::kClasses;
};

/// Adds them. @param T derives from LinkKeys
template <class T>
config::Schema<T> with_link_keys(config::Schema<T> schema) {
  schema
      .optional("record", static_cast<Recorded T::*>(&LinkKeys::recorded),
                "what the result says of links: classes, or links (each that carried something)")
      .optional("faults", static_cast<std::vector<FaultConfig> T::*>(&LinkKeys::faults),
                "links that degrade or fail; what crosses a dead one takes another way, or the run "
                "ends where there is none");
  return schema;
}

}  // namespace orrery
