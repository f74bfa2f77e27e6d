// SPDX-License-Identifier: Apache-2.0
// Zamba2's blocks (arXiv 2411.15242; transformers, modular_zamba2.py): attention to the residual
// stream beside the embeddings, twice the model's width, and a gated MLP behind it without a
// residual. A few blocks serve many layers in turn; each use has a matrix behind it, adapters of
// its own and a KV cache of its own. What it gives goes into the Mamba layer behind it. Kernels are
// those of vLLM (model_executor/models/zamba2.py), where adapters are products of their own; their
// gradients follow from them, an estimate, for no published software trains the model. Gradients of
// shared weights are added up over their uses, which all have to be on one pipeline stage.
#include <algorithm>
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

/// Columns of queries, keys and values on a rank.
std::int64_t block_qkv_columns(const LlmConfig& model, const LayerConfig& layer, int tp) {
  const AttentionConfig& a = model.attention_of(layer);
  return (a.heads / tp + 2 * local_kv_heads(a, tp)) * a.head_dim;
}

/// Elements of the matrices that uses of a block share, on a rank.
std::int64_t block_matrices(const LlmConfig& model, const LayerConfig& layer, int tp) {
  const AttentionConfig& a = model.attention_of(layer);
  return joined_columns(model) * block_qkv_columns(model, layer, tp) +
         a.heads / tp * a.head_dim * model.hidden +
         3 * model.hidden * (model.mlp.intermediate / tp);
}

Linear block_matrix(const LayerTask& task, const char* name, std::int64_t in, std::int64_t out) {
  return {name, in, out, task.work.formats.precision, task.weights(task.layer.attention)};
}

class SharedBlock final : public GroupedAttention {
 public:
  std::string name() const override { return "shared block"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& layer) const override {
    return (layer.shares_weights ? " again, attention" : ", attention") +
           attention_sizes(model, layer) + ", MLP " + std::to_string(model.mlp.intermediate);
  }
  bool norms_input() const override { return true; }
  PartParameters parameters(const LlmConfig& model, const LayerConfig& layer,
                            int tp) const override;
  /// Not said: several uses update one matrix.
  std::vector<PartMatrix> matrices(const LlmConfig& /*model*/, const LayerConfig& /*layer*/,
                                   int /*tp*/) const override {
    return {};
  }
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override;
  std::int64_t widest(const LayerTask& task) const override {
    return std::max(block_qkv_columns(task.model, task.layer, task.work.split.tp),
                    2 * task.model.mlp.intermediate / task.work.split.tp);
  }
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
  return layer.shares_weights ? real(block_matrices(model, layer, 1)) : 0;
}

PartParameters SharedBlock::parameters(const LlmConfig& model, const LayerConfig& layer,
                                       int tp) const {
  const SharedBlockConfig& block = model.shared_block;
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / tp;
  const std::int64_t qkv = block_qkv_columns(model, layer, tp);
  PartParameters p;
  if (!layer.shares_weights) {
    p.split = block_matrices(model, layer, tp);
    p.whole_vectors = joined + model.hidden;
  }
  // Adapters: their narrow sides are on every rank, queries, keys and values have one each.
  p.whole = model.hidden * model.hidden + block.adapter_rank * model.hidden;
  p.split += 2 * block.adapter_rank * inner;
  if (block.attention_adapters) {
    p.whole += 3 * block.adapter_rank * joined;
    p.split += block.adapter_rank * qkv;
  }
  p.sixteen_bit = p.whole_vectors;
  return p;
}

/// What an adapter adds to `width` columns behind a product of `in` columns: `count` pairs.
void add_adapters(StepList& steps, const LayerTask& task, const char* name, std::int64_t in,
                  std::int64_t width, std::int64_t count) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t rank = task.model.shared_block.adapter_rank;
  const std::string part = std::string("shared block ") + name + " adapter";
  steps.then(gemm(part + " down", w.formats.precision, {w.tokens(), count * rank, in}));
  steps.then(gemm(part + " up", w.formats.precision, {w.tokens(), width / count, rank, count}));
  steps.then(stream(part + " addition", KernelClass::kElementwise, w.tokens(), width,
                    {2 * bytes, bytes, 1}));
}

/// Their gradients, and the sum of that of their input with the matrix's.
void adapters_backward(StepList& steps, const LayerTask& task, const char* name, std::int64_t in,
                       std::int64_t width, std::int64_t count) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t rank = task.model.shared_block.adapter_rank;
  const std::string part = std::string("shared block ") + name + " adapter";
  batched_backward(steps, w, part + " up", {w.tokens(), width / count, rank, count});
  batched_backward(steps, w, part + " down", {w.tokens(), count * rank, in});
  steps.then(stream(part + " gradient addition", KernelClass::kElementwise, w.tokens(), in,
                    {2 * bytes, bytes, 1}));
}

/// How ranks add up a product of rows: training shares tokens out where sequences are split.
RowOutput block_reduction(const RankWork& work) {
  const bool scatters = work.batch.phase == Phase::kTraining && work.split.sp;
  return scatters ? RowOutput::kScattered : RowOutput::kReduced;
}

void SharedBlock::forward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  const LlmConfig& model = task.model;
  const AttentionConfig& a = task.attention();
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / w.split.tp;
  const std::int64_t qkv = block_qkv_columns(model, task.layer, w.split.tp);
  const std::int64_t rows = w.row_tokens();
  steps.then(stream("shared block concatenation", KernelClass::kElementwise, rows, joined,
                    {bytes, bytes, 0}));
  makes(steps, task, {kept::layer_input, joined_input});
  steps.then(norm("shared block input norm", w.normed_precision(), {rows, joined, false, false}));
  column_forward(steps, w, {block_matrix(task, "shared block qkv", joined, qkv)}, joined);
  makes(steps, task, {joined_normed});
  if (model.shared_block.attention_adapters) add_adapters(steps, task, "qkv", joined, qkv, 3);
  rotary_forward(steps, task);
  next_turn(steps, task);
  for (const AttentionPart& part : w.batch.attention_kernels()) part_forward(steps, task, part);
  makes(steps, task, {kept::output_projection_input});
  row_forward(steps, w,
              block_matrix(task, "shared block attention output", a.heads / w.split.tp * a.head_dim,
                           model.hidden),
              block_reduction(w));
  steps.then(
      norm("shared block mlp norm", w.normed_precision(), {rows, model.hidden, false, false}));
  makes(steps, task, {block_mlp_norm_input});
  column_forward(steps, w, {block_matrix(task, "shared block gate-up", model.hidden, 2 * inner)},
                 model.hidden);
  makes(steps, task, {block_mlp_input});
  if (model.shared_block.adapter_rank > 0)
    add_adapters(steps, task, "mlp", model.hidden, 2 * inner, 1);
  steps.then(activation("shared block activation", w.formats.precision, w.tokens(), inner, true));
  makes(steps, task, {block_function_input, block_down_input, block_adapter_columns});
  row_forward(steps, w, block_matrix(task, "shared block down", inner, model.hidden),
              block_reduction(w));
  local_forward(steps, w, block_matrix(task, "shared block output", model.hidden, model.hidden),
                rows);
  makes(steps, task, {block_output_input});
}

void SharedBlock::backward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  const LlmConfig& model = task.model;
  const AttentionConfig& a = task.attention();
  const double bytes = activation_bytes(w.formats.precision);
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / w.split.tp;
  const std::int64_t qkv = block_qkv_columns(model, task.layer, w.split.tp), rows = w.row_tokens();
  const auto norm_gradient = [&](const char* name, std::int64_t columns) {
    steps.then(stream(name, KernelClass::kNormalization, rows, columns,
                      {2 * bytes, bytes, vector_cost::kNormBackward}));
  };
  local_backward(steps, w, block_matrix(task, "shared block output", model.hidden, model.hidden),
                 rows);
  frees(steps, task, {block_output_input});
  row_backward(steps, w, block_matrix(task, "shared block down", inner, model.hidden));
  frees(steps, task, {block_down_input});
  steps.then(activation_backward("shared block activation backward", task, w.tokens(), inner));
  frees(steps, task, {block_function_input});
  if (model.shared_block.adapter_rank > 0)
    adapters_backward(steps, task, "mlp", model.hidden, 2 * inner, 1);
  column_backward(steps, w, {block_matrix(task, "shared block gate-up", model.hidden, 2 * inner)},
                  model.hidden);
  frees(steps, task, {block_mlp_input});
  norm_gradient("shared block mlp norm backward", model.hidden);
  frees(steps, task, {block_mlp_norm_input});
  row_backward(steps, w,
               block_matrix(task, "shared block attention output",
                            a.heads / w.split.tp * a.head_dim, model.hidden));
  if (!w.formats.narrow_inputs) uses(steps, task, {kept::attention_result});
  frees(steps, task, {kept::output_projection_input});
  core_backward(steps, task);
  steps.then(rotated_backward(task, rotated_width(task)));
  if (model.shared_block.attention_adapters) adapters_backward(steps, task, "qkv", joined, qkv, 3);
  uses(steps, task, {block_adapter_columns});
  column_backward(steps, w, {block_matrix(task, "shared block qkv", joined, qkv)}, joined);
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
