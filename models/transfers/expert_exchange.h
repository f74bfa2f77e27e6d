// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/machine/network.h"
#include "sim/machine/system_config.h"

namespace orrery {

struct SystemConfig;

/// Prices dispatch and combine by the kernels of the system (ExpertExchangeConfig).
class ExpertExchangePrice {
 public:
  explicit ExpertExchangePrice(const SystemConfig& system);

  /// Replaces latency, loads, time and bottleneck of a dispatch or combine whose loads are the
  /// payload; the bytes by kind stay. A link whose payload capacity assumes another efficiency than
  /// the kernel reaches gets as much more load, so that the replay shares it rightly.
  /// @param crosses whether a group has ranks on more than one node
  void apply(const Transfer& transfer, bool crosses, const Topology& topology,
             const std::vector<BytesPerSecond>& capacities, PricedTransfer& priced) const;

  /// SMs that the kernels hold.
  int units() const { return kernels_.units.value; }

 private:
  ExpertExchangeConfig kernels_;
  double scale_up_efficiency_;  // that payload capacities assume
  double scale_out_efficiency_;
};

}  // namespace orrery
