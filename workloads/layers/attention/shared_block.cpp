// SPDX-License-Identifier: Apache-2.0
// Zamba2's blocks (arXiv 2411.15242; transformers, modular_zamba2.py): attention to the residual
// stream beside the embeddings, twice the model's width, and a gated MLP behind it without a
// residual. A few blocks serve many layers in turn; each use has a matrix behind it, adapters of
// its own and a KV cache of its own. What it gives goes into the Mamba layer behind it. Kernels are
// those of vLLM (model_executor/models/zamba2.py), where adapters are products of their own; their
// gradients follow from them, an estimate, for no published software trains the model. Gradients of
// shared weights are added up over their uses, which all have to be on one pipeline stage.
#include <string>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/attention/grouped_attention.h"
#include "workloads/layers/attention/rotary_kernels.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Columns that attention reads: the residual stream and the embeddings.
std::int64_t joined_columns(const LlmConfig& model) { return 2 * model.hidden; }

Linear block_qkv(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const int tp = task.work.split.tp;
  return mixer_matrix(task, "shared block qkv", joined_columns(task.model),
                      (a.heads / tp + 2 * local_kv_heads(a, tp)) * a.head_dim,
                      MatrixSplit::kColumns);
}
Linear block_attention_output(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  return mixer_matrix(task, "shared block attention output",
                      a.heads / task.work.split.tp * a.head_dim, task.model.hidden,
                      MatrixSplit::kRows);
}
Linear block_gate_up(const LayerTask& task) {
  return mixer_matrix(task, "shared block gate-up", task.model.hidden,
                      2 * (task.model.mlp.intermediate / task.work.split.tp),
                      MatrixSplit::kColumns);
}
Linear block_down(const LayerTask& task) {
  return mixer_matrix(task, "shared block down", task.model.mlp.intermediate / task.work.split.tp,
                      task.model.hidden, MatrixSplit::kRows);
}

/// Matrices that uses of a block share.
std::vector<Linear> block_linears(const LayerTask& task) {
  return {block_qkv(task), block_attention_output(task), block_gate_up(task), block_down(task)};
}

/// The matrix behind each use.
Linear block_output(const LayerTask& task) {
  return mixer_matrix(task, "shared block output", task.model.hidden, task.model.hidden,
                      MatrixSplit::kNone);
}

/// A pair of matrices beside a matrix of a block, or `count` pairs beside parts of its columns.
struct BlockAdapter {
  Linear down, up;
  std::int64_t count = 1;
};

BlockAdapter block_adapter(const LayerTask& task, const std::string& name, const Linear& matrix,
                           std::int64_t count) {
  const std::int64_t rank = task.model.shared_block.adapter_rank;
  return {mixer_matrix(task, name + " down", matrix.in, count * rank, MatrixSplit::kNone),
          mixer_matrix(task, name + " up", rank, matrix.out, MatrixSplit::kColumns), count};
}

BlockAdapter mlp_adapter(const LayerTask& task) {
  return block_adapter(task, "shared block mlp adapter", block_gate_up(task), 1);
}

/// Queries, keys and values have a pair each.
BlockAdapter qkv_adapter(const LayerTask& task) {
  return block_adapter(task, "shared block qkv adapter", block_qkv(task), 3);
}

class SharedBlock final : public GroupedAttention {
 public:
  std::string name() const override { return "shared block"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& layer) const override {
    return (layer.shares_weights ? " again, attention" : ", attention") +
           attention_sizes(model, layer) + ", MLP " + std::to_string(model.mlp.intermediate);
  }
  bool norms_input() const override { return true; }
  MixerWeights weights(const LayerTask& task) const override;
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override;
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    GroupedAttention::require_split(model, layer, tp);
    require_divides(model.mlp.intermediate, tp, "tp", "columns of the MLP");
  }
  void forward(StepList& steps, const LayerTask& task) const override;
  void backward(StepList& steps, const LayerTask& task) const override;
};

// Tensors that forward passes leave.

Tensor block_rows(const char* name, const LayerTask& task, std::int64_t rows, std::int64_t columns,
                  double bytes) {
  return kept::of_layer(name, task, real(rows * columns) * bytes);
}

double block_wide(const LayerTask& task) { return activation_bytes(task.work.formats.precision); }

/// The residual stream beside the embeddings, in front of the norm and behind it.
Tensor joined_input(const LayerTask& task) {
  return block_rows("shared block joined input", task, task.work.row_tokens(),
                    joined_columns(task.model), block_wide(task));
}
Tensor joined_normed(const LayerTask& task) {
  return block_rows("shared block qkv input", task, task.work.row_tokens(),
                    joined_columns(task.model), kept::input_bytes(task.work));
}
Tensor block_mlp_norm_input(const LayerTask& task) {
  return block_rows("shared block mlp norm input", task, task.work.row_tokens(), task.model.hidden,
                    block_wide(task));
}
Tensor block_mlp_input(const LayerTask& task) {
  return block_rows("shared block mlp input", task, task.work.row_tokens(), task.model.hidden,
                    kept::input_bytes(task.work));
}
/// In front of the function of the MLP and behind it.
Tensor block_function_input(const LayerTask& task) {
  return block_rows("shared block function input", task, task.work.tokens(),
                    2 * (task.model.mlp.intermediate / task.work.split.tp), block_wide(task));
}
Tensor block_down_input(const LayerTask& task) {
  return block_rows("shared block down input", task, task.work.tokens(),
                    task.model.mlp.intermediate / task.work.split.tp, kept::input_bytes(task.work));
}
Tensor block_output_input(const LayerTask& task) {
  return block_rows("shared block output input", task, task.work.row_tokens(), task.model.hidden,
                    kept::input_bytes(task.work));
}
/// Between the matrices of adapters.
Tensor block_adapter_columns(const LayerTask& task) {
  const SharedBlockConfig& block = task.model.shared_block;
  return block_rows("shared block adapter columns", task, task.work.tokens(),
                    (block.attention_adapters ? 4 : 1) * block.adapter_rank, block_wide(task));
}

/// Products with weights that count as another layer's.
double SharedBlock::multiply_adds(const LlmConfig& model, const LayerConfig& layer) const {
  const RankWork whole;
  double elements = 0;
  if (layer.shares_weights)
    for (const Linear& linear : block_linears({model, layer, whole}))
      elements += real(linear.in * linear.out);
  return elements;
}

MixerWeights SharedBlock::weights(const LayerTask& task) const {
  const auto add_adapter = [](MixerWeights& all, const BlockAdapter& adapter) {
    all.matrices.insert(all.matrices.end(), {adapter.down, adapter.up});
  };
  MixerWeights all;
  if (!task.layer.shares_weights) {
    all.matrices = block_linears(task);
    all.whole_vectors = joined_columns(task.model) + task.model.hidden;
  }
  all.matrices.push_back(block_output(task));
  if (task.model.shared_block.adapter_rank > 0) add_adapter(all, mlp_adapter(task));
  if (task.model.shared_block.attention_adapters) add_adapter(all, qkv_adapter(task));
  return all;
}

/// What an adapter adds to what its matrix gives.
void adapter_products(StepList& steps, const LayerTask& task, const BlockAdapter& adapter,
                      const char* addition) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const auto& [down, up, count] = adapter;
  steps.then(gemm(down.name, down.precision, {w.tokens(), down.out, down.in}));
  steps.then(gemm(up.name, up.precision, {w.tokens(), up.out / count, up.in, count}));
  steps.then(
      stream(addition, KernelClass::kElementwise, w.tokens(), up.out, {2 * bytes, bytes, 1}));
}

/// The gradients of an adapter, and the sum of the gradient of its input with the matrix's.
void adapter_gradients(StepList& steps, const LayerTask& task, const BlockAdapter& adapter,
                       const char* addition) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const auto& [down, up, count] = adapter;
  batched_backward(steps, w, up.name, {w.tokens(), up.out / count, up.in, count});
  batched_backward(steps, w, down.name, {w.tokens(), down.out, down.in});
  steps.then(
      stream(addition, KernelClass::kElementwise, w.tokens(), down.in, {2 * bytes, bytes, 1}));
}

/// How ranks add up a product of rows: training shares tokens out where sequences are split.
RowOutput block_reduction(const RankWork& work) {
  const bool scatters = work.batch.phase == Phase::kTraining && work.split.sp;
  return scatters ? RowOutput::kScattered : RowOutput::kReduced;
}

void SharedBlock::forward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  const LlmConfig& model = task.model;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / w.split.tp;
  const std::int64_t rows = w.row_tokens();
  steps.then(stream("shared block concatenation", KernelClass::kElementwise, rows, joined,
                    {bytes, bytes, 0}));
  makes(steps, task, {kept::layer_input, joined_input});
  steps.then(norm("shared block input norm", w.normed_precision(), {rows, joined, false, false}));
  column_forward(steps, w, {block_qkv(task)}, joined);
  makes(steps, task, {joined_normed});
  if (model.shared_block.attention_adapters)
    adapter_products(steps, task, qkv_adapter(task), "shared block qkv adapter addition");
  rotary_forward(steps, task);
  next_turn(steps, task);
  for (const AttentionPart& part : w.batch.attention_kernels()) part_forward(steps, task, part);
  makes(steps, task, {kept::output_projection_input});
  row_forward(steps, w, block_attention_output(task), block_reduction(w));
  steps.then(
      norm("shared block mlp norm", w.normed_precision(), {rows, model.hidden, false, false}));
  makes(steps, task, {block_mlp_norm_input});
  column_forward(steps, w, {block_gate_up(task)}, model.hidden);
  makes(steps, task, {block_mlp_input});
  if (model.shared_block.adapter_rank > 0)
    adapter_products(steps, task, mlp_adapter(task), "shared block mlp adapter addition");
  steps.then(activation("shared block activation", w.formats.precision, w.tokens(), inner, true));
  makes(steps, task, {block_function_input, block_down_input, block_adapter_columns});
  row_forward(steps, w, block_down(task), block_reduction(w));
  local_forward(steps, w, block_output(task), rows);
  makes(steps, task, {block_output_input});
}

void SharedBlock::backward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  const LlmConfig& model = task.model;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / w.split.tp;
  const std::int64_t rows = w.row_tokens();
  const auto norm_gradient = [&](const char* name, std::int64_t columns) {
    steps.then(stream(name, KernelClass::kNormalization, rows, columns,
                      {2 * bytes, bytes, vector_cost::kNormBackward}));
  };
  local_backward(steps, w, block_output(task), rows);
  frees(steps, task, {block_output_input});
  row_backward(steps, w, block_down(task));
  frees(steps, task, {block_down_input});
  steps.then(activation_backward("shared block activation backward", task, w.tokens(), inner));
  frees(steps, task, {block_function_input});
  if (model.shared_block.adapter_rank > 0)

    adapter_gradients(steps, task, mlp_adapter(task), "shared block mlp adapter gradient addition");
  column_backward(steps, w, {block_gate_up(task)}, model.hidden);
  frees(steps, task, {block_mlp_input});
  norm_gradient("shared block mlp norm backward", model.hidden);
  frees(steps, task, {block_mlp_norm_input});
  row_backward(steps, w, block_attention_output(task));
  if (!w.formats.narrow_inputs) uses(steps, task, {kept::attention_result});
  frees(steps, task, {kept::output_projection_input});
  core_backward(steps, task);
  steps.then(rotated_backward(task, rotated_width(task)));
  if (model.shared_block.attention_adapters)
    adapter_gradients(steps, task, qkv_adapter(task), "shared block qkv adapter gradient addition");
  uses(steps, task, {block_adapter_columns});
  column_backward(steps, w, {block_qkv(task)}, joined);
  frees(steps, task, {joined_normed, block_adapter_columns});
  norm_gradient("shared block input norm backward", joined);
  frees(steps, task, {joined_input});
  // To the residual stream and the embeddings, added to what both have.
  steps.then(stream("shared block gradient addition", KernelClass::kElementwise, rows, joined,
                    {2 * bytes, bytes, 1}));
}

}  // namespace

const Mixer& shared_block() {
  static const SharedBlock mixer;
  return mixer;
}

}  // namespace orrery
