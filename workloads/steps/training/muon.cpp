// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/muon.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <queue>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/ops/kernels.h"
#include "workloads/plan/stages.h"
#include "workloads/steps/training/replica_sync.h"

namespace orrery {
namespace {

using Matrices = std::vector<MuonMatrix>;

void add_mixer(const Mixer& mixer, const LlmConfig& model, const LayerConfig& layer, int tp,
               Matrices& all) {
  for (const Linear& linear : mixer.weights(model, layer, tp).matrices) {
    const bool parts = linear.split == MatrixSplit::kParts;
    const MatrixSplit split = parts ? MatrixSplit::kNone : linear.split;
    const std::vector<MatrixPart> whole = {{linear.out}};
    for (const MatrixPart& part : linear.parts.empty() ? whole : linear.parts)
      all.insert(all.end(), static_cast<std::size_t>(part.count),
                 {part.out / part.count, linear.in, split});
  }
}

void add_experts(const LlmConfig& model, const LayerConfig& layer, const ParallelConfig& parallel,
                 Matrices& all) {
  const ExpertWeights weights =
      moe_weights({model, layer, training_rank(parallel.tp, parallel.etp)});
  for (std::int64_t i = 0; i < expert_slots(model.moe, parallel.ep); ++i)
    for (const Linear& linear : weights.expert.matrices)
      all.push_back({linear.out, linear.in, linear.split, true});
  for (const Linear& linear : weights.whole.matrices)
    all.push_back({linear.out, linear.in, linear.split});
}

Matrices stage_matrices(const LlmConfig& model, const TrainingConfig& config, int stage) {
  Matrices all;
  const auto add = [&](const LayerConfig& layer) {
    const Matrices more = layer_matrices(model, layer, config.parallel);
    all.insert(all.end(), more.begin(), more.end());
  };
  const Placement placement = placement_of(config);
  for (const std::int64_t i :
       layers_of_stage(model.layer_count(), config.parallel, placement, stage, config.mtp))
    add(model.layer(i));
  if (!placement.holds(stage, module_slice(config.parallel, placement))) return all;
  for (int module = 0; module < config.mtp; ++module) {
    add(model.module_layer());
    all.push_back({model.hidden / config.parallel.tp, 2 * model.hidden, MatrixSplit::kColumns});
  }
  return all;
}

Matrices of_experts(Matrices all, bool experts) {
  std::erase_if(all, [experts](const MuonMatrix& matrix) { return matrix.expert != experts; });
  return all;
}

/// The share of the rank that has most elements, of matrices that `ranks` deal out.
Matrices largest_share(Matrices all, int ranks) {
  std::ranges::stable_sort(all, std::greater<>(), &MuonMatrix::elements);
  const std::size_t owners = std::min(static_cast<std::size_t>(ranks), all.size());
  std::vector<Matrices> shares(owners);
  using Load = std::pair<double, std::size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::size_t i = 0; i < owners; ++i) least.emplace(0, i);
  Load most{0, 0};
  for (const MuonMatrix& matrix : all) {
    const auto [load, owner] = least.top();
    least.pop();
    shares[owner].push_back(matrix);
    const Load now{load + matrix.elements(), owner};
    least.push(now);
    if (now.first > most.first) most = now;
  }
  return owners > 0 ? shares[most.second] : Matrices{};
}

Kernel update_kernel(std::string name, const Matrices& matrices, StreamCost cost,
                     std::int64_t launches_each) {
  double elements = 0;
  for (const MuonMatrix& matrix : matrices) elements += matrix.elements();
  Kernel kernel = stream(std::move(name), KernelClass::kOptimizer,
                         static_cast<std::int64_t>(elements), 1, cost);
  kernel.launches = launches_each * static_cast<std::int64_t>(matrices.size());
  return kernel;
}

/// c = alpha a b + beta c, c of [m, n] in 16 bits.
Kernel added_product(const char* name, std::int64_t m, std::int64_t n) {
  Kernel kernel = gemm(name, Precision::kBf16, {.m = m, .n = n, .k = m});
  kernel.read += kernel.written;
  return kernel;
}

void append_iterations(BlockBuilder& block, const NewtonSchulz& shape, int steps,
                       const std::function<void(TransferKind, double bytes)>& collective) {
  if (shape.gathered > 0) collective(TransferKind::kAllGather, shape.gathered);
  const Kernel gram =
      gemm("newton schulz gram", Precision::kBf16, {.m = shape.m, .n = shape.m, .k = shape.n});
  const Kernel square = added_product("newton schulz square", shape.m, shape.m);
  const Kernel product = added_product("newton schulz product", shape.m, shape.n);
  for (int step = 0; step < steps; ++step) {
    block.kernel(gram, Category::kOptimizer);
    if (shape.summed > 0) collective(TransferKind::kAllReduce, shape.summed);
    block.kernel(square, Category::kOptimizer);
    block.kernel(product, Category::kOptimizer);
  }
}

}  // namespace

std::vector<MuonMatrix> layer_matrices(const LlmConfig& model, const LayerConfig& layer,
                                       const ParallelConfig& parallel) {
  Matrices all;
  const AttentionConfig& attention = model.attention_of(layer);
  const Mixer* mixer = mixer_of(model, layer);
  if (mixer != nullptr) add_mixer(*mixer, model, layer, parallel.tp, all);
  if (layer.kind == LayerKind::kCross)
    add_mixer(mixer_of(MixerKind::kAttention), model, layer, parallel.tp, all);
  if (layer.position_biases)
    all.push_back({model.relative_positions, attention.heads / parallel.tp, MatrixSplit::kRows});
  if (!layer.feeds) return all;
  if (layer.moe)
    add_experts(model, layer, parallel, all);
  else
    for (const Linear& linear : mlp_weights({model, layer, training_rank(parallel.tp)}).matrices)
      all.push_back({linear.out, linear.in, linear.split});
  return all;
}

std::vector<MuonMatrix> updated_matrices(const LlmConfig& model, const TrainingConfig& config,
                                         int stage) {
  Matrices all = stage_matrices(model, config, stage);
  if (config.parallel.zero < 1) return all;
  const int dense = config.parallel.shards() * placement_of(config).copies();
  Matrices share = largest_share(of_experts(all, false), dense);
  const int replicas = expert_replicas(config) / config.parallel.copies();
  const Matrices experts = largest_share(of_experts(all, true), replicas);
  share.insert(share.end(), experts.begin(), experts.end());
  return share;
}

MatrixElements matrix_elements(const LlmConfig& model, const TrainingConfig& config, int stage) {
  MatrixElements elements;
  for (const MuonMatrix& matrix : stage_matrices(model, config, stage))
    (matrix.expert ? elements.experts : elements.dense) += matrix.elements();
  return elements;
}

NewtonSchulz newton_schulz(const MuonMatrix& matrix, MuonTensorMode mode, int ranks) {
  const auto whole = [](std::int64_t a, std::int64_t b) {
    return NewtonSchulz{std::min(a, b), std::max(a, b)};
  };
  const bool outputs = matrix.split == MatrixSplit::kColumns;
  if (matrix.split == MatrixSplit::kNone || ranks == 1 || mode == MuonTensorMode::kBlockwise)
    return whole(matrix.outputs, matrix.inputs);
  if (mode == MuonTensorMode::kDuplicated) {
    NewtonSchulz shape =
        whole(matrix.outputs * (outputs ? ranks : 1), matrix.inputs * (outputs ? 1 : ranks));
    shape.gathered = 4 * matrix.elements() * ranks;
    return shape;
  }
  // The side that is whole, be it the longer one.
  NewtonSchulz shape{outputs ? matrix.inputs : matrix.outputs,
                     outputs ? matrix.outputs : matrix.inputs};
  shape.summed = 2 * real(shape.m) * real(shape.m);
  return shape;
}

void append_muon(BlockBuilder& block, const Mesh& mesh, const MuonConfig& muon,
                 std::vector<MuonMatrix> matrices, int stage) {
  if (matrices.empty()) return;
  std::ranges::stable_sort(matrices);
  // Momentum and Nesterov's step: lerp of two fp32 tensors each.
  block.kernel(update_kernel("muon momentum", matrices, {16, 8, 4}, 2), Category::kOptimizer);
  // Norm, division, cast.
  block.kernel(update_kernel("muon normalization", matrices, {12, 6, 4}, 3), Category::kOptimizer);
  for (const MuonMatrix& matrix : matrices) {
    const std::string axis = matrix.expert ? "etp" : "tp";
    const int ranks = matrix.expert ? mesh.parallel().etp : mesh.parallel().tp;
    append_iterations(
        block, newton_schulz(matrix, muon.tp_mode, ranks), muon.num_ns_steps,
        [&](TransferKind kind, double bytes) {
          block.collective(
              optimizer_transfer(fmt::format("muon {} {} stage {}", axis, to_string(kind), stage),
                                 axis, kind, bytes, mesh.groups({axis}, stage)),
              matrix.expert ? kExpertTensorStream : kTensorStream);
        });
  }
  // Cast to fp32 and scaled; weight decay, then the update of the master weights.
  block.kernel(update_kernel("muon update", matrices, {18, 16, 4}, 4), Category::kOptimizer);
}

}  // namespace orrery
