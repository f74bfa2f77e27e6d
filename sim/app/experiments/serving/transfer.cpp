// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/serving/transfer.h"

#include <fmt/core.h>

#include "workloads/base/require.h"
#include "workloads/layers/parts/mixer.h"

namespace orrery {
namespace {

/// Ranks that hold a request together.
int ranks_of_request(const ServingGroup& group) {
  return group.parallel.tp * group.parallel.cp * group.parallel.pp;
}

/// Payload of one rank, one way.
BytesPerSecond rank_bandwidth(const SystemConfig& system, KvLinks over) {
  const AcceleratorConfig& accelerator = system.accelerator;
  if (over == KvLinks::kScaleUp)
    return accelerator.scale_up.bandwidth.value / accelerator.dies *
           system.scale_up.efficiency.value;
  return accelerator.scale_out.bandwidth.value / accelerator.dies / system.packages_per_nic() *
         system.scale_out.efficiency.value;
}

KvPort port_of(const LlmConfig& llm, const ServingGroup& group, const ServingMemory& memory,
               const KvTransferConfig& transfer) {
  const double ranks = ranks_of_request(group);
  const EngineMemory engine = group.engine->memory();
  KvPort port;
  port.bandwidth = rank_bandwidth(group.system, transfer.over) * ranks;
  port.latency =
      transfer.start + (transfer.over == KvLinks::kScaleUp ? group.system.scale_up.latency.value
                                                           : group.system.scale_out.latency.value);
  Bytes windows = memory.window;
  if (!memory.states_alone()) {
    const Bytes token = memory.block / static_cast<double>(memory.block_tokens);
    if (memory.most_kept > 0)
      windows = token * static_cast<double>(memory.window_tokens);
    else
      port.size.token = token * ranks;
  }
  port.size.window =
      (memory.set_aside / static_cast<double>(engine.most_sampled) + windows + memory.states) *
      ranks;
  port.size.window_tokens = memory.window_tokens;
  // A state is whole from the first token on.
  if (holds_states(llm)) port.size.window_tokens = 1;
  return port;
}

/// Rate at which a replica reads a tier. A cache in the memory of another host crosses the NICs
/// first and the links to the devices afterwards.
BytesPerSecond tier_bandwidth(const ServingGroup& group, const KvTierConfig& tier) {
  if (tier.bandwidth) return *tier.bandwidth;
  const BytesPerSecond host =
      group.system.accelerator.host_link.bandwidth.value * group.accelerators();
  if (tier.kind == KvTierKind::kHost) return host;
  const BytesPerSecond nics = rank_bandwidth(group.system, KvLinks::kScaleOut) *
                              static_cast<double>(group.parallel.ranks());
  if (nics.base() == 0 || host.base() == 0) return nics;
  return nics * (host / (nics + host));
}

Seconds tier_latency(const ServingGroup& group, const KvTierConfig& tier) {
  constexpr double kDriveLatency = 100e-6;
  if (tier.latency) return *tier.latency;
  if (tier.kind == KvTierKind::kPooled) return group.system.scale_out.latency.value;
  return Seconds(tier.kind == KvTierKind::kHost ? kHostLatency : kDriveLatency);
}

void require_group_transfers(const ServingConfig& serving, std::size_t i) {
  const ServingGroup& group = serving.fleet[i];
  const bool scale_up = serving.kv_transfer.over == KvLinks::kScaleUp;
  require(group.kv_precision == serving.fleet.front().kv_precision, {group_path(i, "kv_precision")},
          "caches go from one group to another as they are: all need the same format");
  require(rank_bandwidth(group.system, serving.kv_transfer.over).base() > 0,
          {group_path(i, "system")},
          fmt::format("{} has no {} that caches could take", group.system.name,
                      scale_up ? "links inside" : "NICs"),
          {{}, {"see serving.kv_transfer.over"}});
  require(!scale_up || (group.system.id == serving.fleet.front().system.id && group.nodes == 1),
          {group_path(i, "system")},
          "kv_transfer.over: scale_up means that all replicas are parts of one system");
}

}  // namespace

std::vector<KvPort> kv_ports(const LlmConfig& llm, const ServingConfig& serving,
                             const std::vector<ServingMemory>& memory) {
  std::vector<KvPort> ports;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    ports.insert(ports.end(), static_cast<std::size_t>(group.replicas),
                 port_of(llm, group, memory[i], serving.kv_transfer));
  }
  return ports;
}

std::vector<KvTierRules> kv_tiers(const ServingGroup& group, const ServingMemory& memory) {
  Bytes token = memory.block / static_cast<double>(memory.block_tokens);
  if (memory.state_tokens > 0)  // the state at the end of each piece goes with its tokens
    token += memory.block * static_cast<double>(memory.state_blocks) /
             static_cast<double>(memory.state_tokens);
  token = token * ranks_of_request(group);
  std::vector<KvTierRules> tiers;
  for (const KvTierConfig& tier : group.kv_tiers) {
    const double ranks = group.parallel.dp;
    KvTierRules rules;
    rules.tokens = static_cast<std::int64_t>(tier.capacity / ranks / token);
    rules.token = token / (tier_bandwidth(group, tier) / ranks);
    rules.latency = tier_latency(group, tier);
    tiers.push_back(rules);
  }
  return tiers;
}

void require_transfers(const ServingConfig& serving) {
  const bool has_prefill = serving.has_role(InstanceRole::kPrefill);
  const bool has_both = serving.has_role(InstanceRole::kBoth);
  const bool has_decode = serving.has_role(InstanceRole::kDecode);
  require(has_prefill || has_both, {group_path(0, "role")}, "no group takes prompts",
          {"prefill", {}});
  require(!has_decode || has_prefill, {group_path(0, "role")},
          "groups of role decode take requests from groups of role prefill: there is none",
          {"prefill", {}});
  if (!has_prefill) return;
  require(has_decode || has_both, {group_path(0, "role")}, "no group has the role decode",
          {"both", {}});
  int ranks = 0;
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    require_group_transfers(serving, i);
    ranks += serving.fleet[i].parallel.ranks() * serving.fleet[i].replicas;
  }
  const SystemConfig& system = serving.fleet.front().system;
  require(serving.kv_transfer.over == KvLinks::kScaleOut || ranks <= system.ranks(),
          "serving.kv_transfer.over",
          fmt::format("replicas of {} ranks together are no parts of one {}, which has {}", ranks,
                      system.name, system.ranks()));
}

void require_tiers(const ServingConfig& serving) {
  for (std::size_t i = 0; i < serving.fleet.size(); ++i) {
    const ServingGroup& group = serving.fleet[i];
    if (group.kv_tiers.empty()) continue;
    require(group.engine->memory().prefix_caching, {group_path(i, "kv_tiers")},
            "only pieces of prompts that are kept go to other memory: the engine keeps none",
            {{}, {"see prefix_caching, or what the engine calls it"}});
    for (const KvTierConfig& tier : group.kv_tiers)
      require(tier_bandwidth(group, tier).base() > 0, {group_path(i, "kv_tiers")},
              group.system.name + " does not tell the bandwidth to this memory",
              {{}, {"bandwidth: 20 GB/s"}});
  }
}

}  // namespace orrery
