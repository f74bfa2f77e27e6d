// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/declared.h"
#include "sim/config/fact.h"
#include "sim/units/units.h"

namespace orrery {

/// How a collective library moves large buffers inside a system, where that is another way than
/// that of small ones, with a longer start and a better rate. Such a collective takes
///
///   start + peer x (ranks in a node - 1) + steps x latency
///         + largest of bytes / (line rate x efficiency)
struct BulkConfig {
  Bytes from;                   ///< smallest buffer, as nccl-tests counts it
  Fact<Seconds> start;          ///< time of the start of a collective, once, in place of `launch`
  Fact<Seconds> peer;           ///< each other rank of the group in its node
  Fact<double> efficiency;      ///< payload share of the line rate
  Fact<double> sum_efficiency;  ///< efficiency where the bytes are summed on arrival
  static const config::Schema<BulkConfig>& schema();
};

}  // namespace orrery
