// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/machine/network.h"
#include "sim/machine/scale_up_config.h"

namespace orrery {

struct SystemConfig;

/// Prices collectives of large buffers where the library of the system moves them in another way
/// (BulkConfig). Messages, all-to-alls, dispatch and combine, and groups of several systems are not
/// its.
class BulkPrice {
 public:
  explicit BulkPrice(const SystemConfig& system);

  bool serves(const Transfer& transfer, const RankLayout& layout) const;
  /// What comes once, in place of the launch.
  Seconds start(const Transfer& transfer, const RankLayout& layout) const;
  /// Load of the links inside the system for each byte of payload: their capacities assume the
  /// efficiency of the scale-up fabric.
  double load(TransferKind kind) const;

 private:
  BulkConfig bulk_;
  double scale_up_efficiency_;
};

}  // namespace orrery
