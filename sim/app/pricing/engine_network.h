// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/transfers/flow_model.h"
#include "sim/app/pricing/machine.h"
#include "sim/machine/network.h"

namespace orrery {

/// Collectives as serving engines carry them out: small all-reduces inside a system by kernels of
/// their own, in which every rank reads the others' buffers (one shot) or reduces a part and
/// gathers the rest (two shots); everything else by the communication library.
class EngineNetwork final : public Network {
 public:
  /// @param most size of an all-reduce by the engine's kernels
  EngineNetwork(const Machine& machine, Bytes most);

  const Topology& topology() const override { return library_.topology(); }
  const std::vector<BytesPerSecond>& capacities() const override { return library_.capacities(); }
  PricedTransfer price(const Transfer& transfer) const override;

 private:
  bool is_own(const Transfer& transfer) const;

  FlowModel library_, one_shot_, two_shot_;
  Bytes most_;
  int system_ranks_;
};

}  // namespace orrery
