// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/replica_sync.h"

#include <fmt/core.h>

#include <cstddef>
#include <utility>

#include "workloads/ops/kernels.h"

namespace orrery {

int expert_replicas(const TrainingConfig& config) {
  const ParallelConfig& p = config.parallel;
  return p.tp * p.replicas() / (p.ep * p.etp) * placement_of(config).copies();
}

OptimizerShard shard_of(const RankParameters& parameters, const TrainingConfig& config) {
  const ParallelConfig& p = config.parallel;
  const double expert_shards = static_cast<double>(expert_replicas(config)) / p.copies();
  return {.dense = static_cast<double>(parameters.dense()) /
                   (p.shards() * placement_of(config).copies()),
          .experts = static_cast<double>(parameters.experts) / expert_shards};
}

Transfer optimizer_transfer(std::string name, std::string purpose, TransferKind kind, double bytes,
                            Mesh::Groups groups) {
  return {.name = std::move(name),
          .kind = kind,
          .bytes = Bytes(bytes),
          .groups = std::move(groups),
          .purpose = std::move(purpose)};
}

ReplicaSync::ReplicaSync(const Mesh& mesh, const TrainingConfig& config, int stage)
    : mesh_(mesh), config_(config), stages_(placement_of(config).twins(stage)) {}

/// Replicas follow each other along their axis: runs of `shards` of them share out a copy, and
/// those at one place of their runs hold the same.
Mesh::Groups ReplicaSync::groups(const std::vector<std::string>& axes, Among among) const {
  Mesh::Groups all = mesh_.groups(axes, stages_.front());
  for (std::size_t i = 1; i < stages_.size(); ++i) {
    const Mesh::Groups more = mesh_.groups(axes, stages_[i]);
    for (std::size_t g = 0; g < all.size(); ++g)
      all[g].insert(all[g].end(), more[g].begin(), more[g].end());
  }
  const auto copies = static_cast<std::size_t>(mesh_.parallel().copies());
  if (copies == 1 || among == Among::kAll) return all;
  Mesh::Groups parts;
  for (const std::vector<int>& group : all) {
    const std::size_t shards = group.size() / copies;
    const bool along = among == Among::kShards;
    for (std::size_t i = 0; i < (along ? copies : shards); ++i) {
      std::vector<int>& part = parts.emplace_back();
      for (std::size_t j = 0; j < (along ? shards : copies); ++j)
        part.push_back(group[along ? i * shards + j : j * shards + i]);
    }
  }
  return parts;
}

std::vector<Transfer> ReplicaSync::over_replicas(const Collective& collective, Bytes dense,
                                                 Bytes experts) const {
  std::vector<Transfer> transfers;
  std::string name =
      fmt::format("{} {} stage {}", collective.what, to_string(collective.kind), stages_.front());
  for (std::size_t i = 1; i < stages_.size(); ++i) name += "+" + std::to_string(stages_[i]);
  const auto add = [&](const std::string& prefix, Bytes bytes, const auto& axes) {
    if (bytes.base() <= 0) return;
    Mesh::Groups groups = this->groups(axes, collective.among);
    if (groups.front().size() < 2) return;
    transfers.push_back(
        optimizer_transfer(prefix + name, "dp", collective.kind, bytes.base(), std::move(groups)));
  };
  add("", dense, std::vector<std::string>{"cp", "dp"});
  add("expert ", experts, std::vector<std::string>{"edp"});
  for (Transfer& transfer : transfers) transfer.participants = static_cast<int>(stages_.size());
  return transfers;
}

std::vector<Transfer> ReplicaSync::reduction(const RankParameters& parameters) const {
  const double element = config_.software->gradient_bytes(config_.precision);
  const Bytes dense(static_cast<double>(parameters.dense()) * element);
  const Bytes experts(static_cast<double>(parameters.experts) * element);
  const int zero = config_.parallel.zero;
  if (zero < 1 || (zero == 1 && config_.software->whole_reduction.value))
    return over_replicas({TransferKind::kAllReduce, Among::kAll, "gradients"}, dense, experts);
  std::vector<Transfer> all =
      over_replicas({TransferKind::kReduceScatter, Among::kShards, "gradients"}, dense, experts);
  if (config_.parallel.copies() == 1)
    return by_tensor(std::move(all), parameters.matrices + parameters.vectors);
  const OptimizerShard shard = shard_of(parameters, config_);
  for (Transfer& transfer :
       over_replicas({TransferKind::kAllReduce, Among::kCopies, "gradient shards"},
                     Bytes(shard.dense * element), Bytes(shard.experts * element)))
    all.push_back(std::move(transfer));
  return all;
}

/// Weights of products are narrow where software gathers them so.
Bytes ReplicaSync::weight_bytes(std::int64_t parameters, std::int64_t sixteen_bit) const {
  const bool sharded = config_.parallel.zero >= 3;
  const double whole = training_bytes(config_.precision);
  const double element = sharded ? config_.software->gathered_bytes(config_.precision) : whole;
  const auto wide = static_cast<double>(sixteen_bit);
  return Bytes((static_cast<double>(parameters) - wide) * element + wide * whole);
}

std::vector<Transfer> ReplicaSync::gather(const RankParameters& parameters) const {
  if (config_.parallel.zero < 1) return {};
  return by_tensor(over_replicas({TransferKind::kAllGather, Among::kShards, "weights"},
                                 weight_bytes(parameters.dense(), parameters.sixteen_bit),
                                 weight_bytes(parameters.experts, 0)),
                   parameters.matrices);
}

/// Each of them as so many of equal size, where software has a collective for each tensor.
std::vector<Transfer> ReplicaSync::by_tensor(std::vector<Transfer> whole,
                                             std::int64_t tensors) const {
  if (!config_.software->tensor_collectives.value || config_.parallel.zero < 3 || tensors < 2)
    return whole;
  std::vector<Transfer> parts;
  for (Transfer& transfer : whole) {
    transfer.bytes = transfer.bytes / static_cast<double>(tensors);
    parts.insert(parts.end(), static_cast<std::size_t>(tensors), transfer);
  }
  return parts;
}

RankParameters Bucket::take() { return std::exchange(held_, RankParameters{}); }

}  // namespace orrery
