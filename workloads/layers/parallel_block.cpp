// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parallel_block.h"

#include <utility>

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_switches.h"

namespace orrery {
namespace {

/// What attention and MLP of a parallel block do: the MLP reads what attention has gathered, and
/// the sums of both are reduced once.
RankWork beside_mlp(RankWork work) {
  work.place.partial_output = true;
  return work;
}
RankWork beside_attention(RankWork work) {
  work.place.whole_input = true;
  return work;
}

/// Whether the MLP of a parallel block reads a norm of its own (GPT-NeoX), gathered by itself.
bool norms_apart(const LayerTask& task) { return task.model.norms_per_layer > 1; }

/// The sum of what attention and MLP give, each in parts on the ranks of a tensor parallel group.
/// Gradients of their input are added up likewise; those behind norms of their own are added to
/// that of the residual, one after the other.
LayerOp add_parts(const LayerTask& task) {
  const double bytes = task.bytes();
  const auto sum = [&](const char* name) {
    return kernels(
        {elementwise(name, task.work.tokens(), task.model.hidden, {2 * bytes, bytes, 1})});
  };
  LayerOp op{sum("parallel block addition")};
  if (!norms_apart(task)) op.gradient = sum("parallel block addition backward");
  return op;
}

std::vector<LayerOp> attention_ops(const LayerTask& task) {
  return mixer_of(task.model, task.layer)->ops(task);
}

}  // namespace

std::vector<LayerOp> parallel_block(const LayerTask& task) {
  std::vector<LayerOp> all;
  append(all, GraphPart::kAttention,
         {norm_op("attention norm", task, PastBlock::kGradient, {kept::layer_input}),
          with_work(beside_mlp, attention_ops)});
  append(all, GraphPart::kOther, {add_parts(task)});
  std::vector<LayerOp> mlp = {with_work(beside_attention, mlp_ops)};
  if (norms_apart(task)) {
    LayerOp norm = norm_op("mlp norm", task, PastBlock::kGradient);
    norm.needs = {kept::layer_input};
    append(all, GraphPart::kOther, {std::move(norm)});
    mlp = mlp_ops(task);
  }
  append(all, GraphPart::kOther, std::move(mlp));
  append(all, GraphPart::kOther,
         {residual_output("mlp residual", task, task.work.row_tokens(), kept::mlp_residual_mask,
                          kept::mlp_half_output)});
  return all;
}

}  // namespace orrery
