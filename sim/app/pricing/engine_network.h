// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/transfers/flow_model.h"
#include "sim/machine/network.h"
#include "sim/machine/system_config.h"
#include "sim/serving/engine_costs.h"

namespace orrery {

/// Collectives as serving engines carry them out: all-reduces inside a system by the kernels that
/// EngineAllReduce names, everything else by the communication library. Systems on PCIe have the
/// engine's kernels for pairs alone (vLLM device_communicators/custom_all_reduce.py: disabled on
/// more than two PCIe-only GPUs).
class EngineNetwork final : public Network {
 public:
  /// @param rules sizes that a kernel does not carry are 0; `fused` where all-reduces norm
  /// @param algorithms that go before the engine's kernels and the library, as FlowModel takes them
  /// @param faults links that are slower or down, as FlowModel takes them
  EngineNetwork(const SystemConfig& system, int copies, const EngineAllReduce& rules,
                std::span<const LinkFault> faults = {},
                const std::vector<std::string>& algorithms = {});

  const Topology& topology() const override { return library_.topology(); }
  const std::vector<BytesPerSecond>& capacities() const override { return library_.capacities(); }
  PricedTransfer price(const Transfer& transfer) const override;

 private:
  bool inside_a_system(const Transfer& transfer) const;
  PricedTransfer own_price(const Transfer& transfer) const;
  PricedTransfer symmetric_price(const Transfer& transfer) const;

  FlowModel library_, one_shot_, two_shot_, in_switch_;
  EngineAllReduce rules_;
  std::optional<Seconds> launch_;  ///< launch of a one-shot kernel, where it was measured
  BytesPerSecond memory_;          ///< rate of a rank's memory
  int system_ranks_, most_ranks_;
};

}  // namespace orrery
