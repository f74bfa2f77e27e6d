// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parallel_block.h"

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/ops/kernels.h"

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

/// The sum of what attention and MLP give, or of the gradients of their input, each in parts on the
/// ranks of a tensor parallel group.
void add_parts(StepList& steps, const LayerTask& task, const char* name) {
  const double bytes = task.bytes();
  steps.then(stream(name, KernelClass::kElementwise, task.work.tokens(), task.model.hidden,
                    {2 * bytes, bytes, 1}));
}

/// Whether the MLP of a parallel block reads a norm of its own (GPT-NeoX), gathered by itself.
bool norms_apart(const LayerTask& task) { return task.model.norms_per_layer > 1; }

/// What the MLP of a parallel block does.
RankWork mlp_work(const LayerTask& task) {
  return norms_apart(task) ? task.work : beside_attention(task.work);
}

}  // namespace

StepList parallel_block_forward(const LayerTask& task) {
  const RankWork of_attention = beside_mlp(task.work), of_mlp = mlp_work(task);
  const std::int64_t rows = task.work.row_tokens();
  StepList steps;
  issued(steps, task, GraphPart::kAttention);
  steps.tell_tensors(task.work.passes.tensors);
  steps.then(norm_forward("attention norm", task, rows));
  makes(steps, task, {kept::layer_input});
  mixer_of(task.model, task.layer)
      ->forward(steps, {task.model, task.layer, of_attention, task.forward});
  issued(steps, task, GraphPart::kOther);
  add_parts(steps, task, "parallel block addition");
  if (norms_apart(task)) steps.then(norm_forward("mlp norm", task, rows));
  mlp_forward(steps, {task.model, task.layer, of_mlp, task.forward});
  residual_forward(steps, "mlp residual", task, rows, kept::mlp_residual_mask);
  return steps;
}

void parallel_block_backward(StepList& steps, const LayerTask& task) {
  const RankWork of_attention = beside_mlp(task.work), of_mlp = mlp_work(task);
  issued(steps, task, GraphPart::kOther);
  residual_backward(steps, "mlp residual backward", task, kept::mlp_residual_mask);
  mlp_backward(steps, {task.model, task.layer, of_mlp});
  // Gradients behind norms of their own are added to that of the residual, one after the other.
  if (norms_apart(task)) {
    norm_backward(steps, "mlp norm backward", task, task.work.row_tokens(), PastBlock::kGradient);
    uses(steps, task, {kept::layer_input});
  } else {
    add_parts(steps, task, "parallel block addition backward");
  }
  issued(steps, task, GraphPart::kAttention);
  mixer_of(task.model, task.layer)->backward(steps, {task.model, task.layer, of_attention});
  norm_backward(steps, "attention norm backward", task, task.work.row_tokens(),
                PastBlock::kGradient);
  frees(steps, task, {kept::layer_input});
}

}  // namespace orrery
