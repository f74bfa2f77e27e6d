// SPDX-License-Identifier: Apache-2.0
#include "workloads/training/replica_sync.h"

#include <utility>

#include "workloads/llm/kernels.h"

namespace orrery {

int expert_replicas(const ParallelConfig& parallel) {
  return parallel.tp * parallel.cp * parallel.dp / (parallel.ep * parallel.etp);
}

Transfer optimizer_transfer(std::string name, std::string purpose, TransferKind kind, double bytes,
                            Mesh::Groups groups) {
  Transfer transfer;
  transfer.name = std::move(name);
  transfer.purpose = std::move(purpose);
  transfer.kind = kind;
  transfer.bytes = Bytes(bytes);
  transfer.groups = std::move(groups);
  return transfer;
}

ReplicaSync::ReplicaSync(const Mesh& mesh, const TrainingConfig& config, int stage)
    : mesh_(mesh), config_(config), stage_(stage) {}

std::vector<Transfer> ReplicaSync::over_replicas(TransferKind kind, const std::string& what,
                                                 const RankParameters& parameters,
                                                 double element) const {
  std::vector<Transfer> transfers;
  const std::string name = what + " " + to_string(kind) + " stage " + std::to_string(stage_);
  if (mesh_.parallel().replicas() > 1 && parameters.dense() > 0) {
    transfers.push_back(optimizer_transfer(name, "dp", kind,
                                           static_cast<double>(parameters.dense()) * element,
                                           mesh_.groups({"cp", "dp"}, stage_)));
  }
  if (parameters.experts > 0 && expert_replicas(mesh_.parallel()) > 1) {
    transfers.push_back(optimizer_transfer("expert " + name, "dp", kind,
                                           static_cast<double>(parameters.experts) * element,
                                           mesh_.groups({"edp"}, stage_)));
  }
  return transfers;
}

std::vector<Transfer> ReplicaSync::reduction(const RankParameters& parameters) const {
  const bool sharded = config_.parallel.zero >= 1;
  return over_replicas(sharded ? TransferKind::kReduceScatter : TransferKind::kAllReduce,
                       "gradients", parameters,
                       config_.software->gradient_bytes(config_.precision));
}

std::vector<Transfer> ReplicaSync::gather(const RankParameters& parameters) const {
  if (config_.parallel.zero < 1) return {};
  return over_replicas(TransferKind::kAllGather, "weights", parameters, kWeightBytes);
}

RankParameters Bucket::take() { return std::exchange(held_, RankParameters{}); }

}  // namespace orrery
