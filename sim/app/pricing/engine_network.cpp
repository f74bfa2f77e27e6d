// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/engine_network.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace orrery {
namespace {

PricedTransfer longer(PricedTransfer priced, Seconds by) {
  priced.cost.latency += to_picoseconds(by);
  priced.isolated_time += by;
  return priced;
}

PricedTransfer faster(PricedTransfer a, PricedTransfer b) {
  return b.isolated_time < a.isolated_time ? std::move(b) : std::move(a);
}

std::size_t largest_group(const Transfer& transfer) {
  std::size_t most = 0;
  for (const std::vector<int>& group : transfer.groups) most = std::max(most, group.size());
  return most;
}

}  // namespace

EngineNetwork::EngineNetwork(const SystemConfig& system, int copies, const EngineAllReduce& rules,
                             std::span<const LinkFault> faults,
                             const std::vector<std::string>& algorithms)
    : library_(system, copies, algorithms, FlowModel::kAuto, faults),
      one_shot_(system, copies, "one_shot", FlowModel::kAuto, faults),
      two_shot_(system, copies, "direct", FlowModel::kAuto, faults),
      in_switch_(system, copies, "nvls", FlowModel::kAuto, faults),
      rules_(rules),
      memory_(system.accelerator.memory.bandwidth.value / system.accelerator.dies),
      system_ranks_(system.ranks()),
      most_ranks_(system.scale_up.keys->has_slots() ? 2 : std::numeric_limits<int>::max()) {
  if (system.scale_up.protocols) launch_ = system.scale_up.protocols->one_shot_launch.value;
}

bool EngineNetwork::inside_a_system(const Transfer& transfer) const {
  if (transfer.kind != TransferKind::kAllReduce) return false;
  return std::ranges::all_of(transfer.groups, [&](const auto& group) {
    const auto [least, most] = std::minmax_element(group.begin(), group.end());
    return group.size() > 1 && static_cast<int>(group.size()) <= most_ranks_ &&
           *least / system_ranks_ == *most / system_ranks_;
  });
}

PricedTransfer EngineNetwork::own_price(const Transfer& transfer) const {
  const auto others = static_cast<double>(largest_group(transfer) - 1);
  const auto one = [&] { return longer(one_shot_.price(transfer), rules_.barrier); };
  const auto two = [&] { return longer(two_shot_.price(transfer), rules_.fence * others); };
  if (rules_.one_shot > Bytes(0)) return transfer.bytes < rules_.one_shot ? one() : two();
  return faster(library_.price(transfer), faster(one(), two()));
}

/// Three kernels in a row: a copy into symmetric memory, the reduction, a copy out of it (vLLM
/// device_communicators/symm_mem.py).
PricedTransfer EngineNetwork::symmetric_price(const Transfer& transfer) const {
  constexpr int kCopied = 4;  // two copies read and write
  const Seconds copies = rules_.copies + kCopied * transfer.bytes / memory_;
  if (!rules_.multicast) return longer(two_shot_.price(transfer), copies);
  PricedTransfer priced = in_switch_.price(transfer);
  // Switches add up as for NCCL; the kernel starts like a one-shot kernel.
  if (launch_) {
    priced.isolated_time = priced.isolated_time - to_seconds(priced.cost.latency) + *launch_;
    priced.cost.latency = to_picoseconds(*launch_);
  }
  return longer(std::move(priced), rules_.barrier + copies);
}

PricedTransfer EngineNetwork::price(const Transfer& transfer) const {
  if (!inside_a_system(transfer) || library_.has_named(transfer)) return library_.price(transfer);
  if (transfer.bytes <= rules_.fused)
    return faster(one_shot_.price(transfer), two_shot_.price(transfer));
  if (transfer.bytes < rules_.own) return own_price(transfer);
  if (transfer.bytes < rules_.symmetric) return symmetric_price(transfer);
  return library_.price(transfer);
}

}  // namespace orrery
