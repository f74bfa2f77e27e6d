// SPDX-License-Identifier: Apache-2.0
// Zamba2's blocks (arXiv 2411.15242; transformers, modular_zamba2.py): attention to the residual
// stream beside the embeddings, twice the model's width, and a gated MLP behind it without a
// residual. A few blocks serve many layers in turn; each use has a matrix behind it, adapters of
// its own and a KV cache of its own. What it gives goes into the Mamba layer behind it. Kernels are
// those of vLLM (model_executor/models/zamba2.py), where adapters are products of their own.
#include <algorithm>
#include <string>

#include "workloads/llm/grouped_attention.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/linear.h"
#include "workloads/llm/real.h"
#include "workloads/require.h"

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
  return {name, in, out, task.work.precision, task.weights(task.layer.attention)};
}

class SharedBlock final : public GroupedAttention {
 public:
  std::string name() const override { return "shared block"; }
  bool norms_input() const override { return true; }
  bool trains() const override { return false; }
  PartParameters parameters(const LlmConfig& model, const LayerConfig& layer,
                            int tp) const override;
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override;
  std::int64_t widest(const LayerTask& task) const override {
    return std::max(block_qkv_columns(task.model, task.layer, task.work.tp),
                    2 * task.model.mlp.intermediate / task.work.tp);
  }
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    GroupedAttention::require_split(model, layer, tp);
    require_divides(model.mlp.intermediate, tp, "tp", "columns of the MLP");
  }
  void forward(StepList& steps, const LayerTask& task) const override;
  void backward(StepList& /*steps*/, const LayerTask& /*task*/) const override {}
};

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
  const LayerWork& w = task.work;
  const double bytes = activation_bytes(w.precision);
  const std::int64_t rank = task.model.shared_block.adapter_rank;
  const std::string part = std::string("shared block ") + name + " adapter";
  steps.then(gemm(part + " down", w.precision, {w.tokens(), count * rank, in}));
  steps.then(gemm(part + " up", w.precision, {w.tokens(), width / count, rank, count}));
  steps.then(stream(part + " addition", KernelClass::kElementwise, w.tokens(), width,
                    {2 * bytes, bytes, 1}));
}

void SharedBlock::forward(StepList& steps, const LayerTask& task) const {
  const LayerWork& w = task.work;
  const LlmConfig& model = task.model;
  const AttentionConfig& a = task.attention();
  const double bytes = activation_bytes(w.precision);
  const std::int64_t joined = joined_columns(model), inner = model.mlp.intermediate / w.tp;
  const std::int64_t qkv = block_qkv_columns(model, task.layer, w.tp);
  const std::int64_t rows = w.row_tokens();
  steps.then(stream("shared block concatenation", KernelClass::kElementwise, rows, joined,
                    {bytes, bytes, 0}));
  steps.then(norm("shared block input norm", w.normed_precision(), {rows, joined, false, false}));
  column_forward(steps, w, {block_matrix(task, "shared block qkv", joined, qkv)}, joined);
  if (model.shared_block.attention_adapters) add_adapters(steps, task, "qkv", joined, qkv, 3);
  rotary_forward(steps, task);
  for (const AttentionPart& part : w.attention_kernels()) part_forward(steps, task, part);
  row_forward(steps, w,
              block_matrix(task, "shared block attention output", a.heads / w.tp * a.head_dim,
                           model.hidden),
              RowOutput::kReduced);
  steps.then(
      norm("shared block mlp norm", w.normed_precision(), {rows, model.hidden, false, false}));
  column_forward(steps, w, {block_matrix(task, "shared block gate-up", model.hidden, 2 * inner)},
                 model.hidden);
  if (model.shared_block.adapter_rank > 0)
    add_adapters(steps, task, "mlp", model.hidden, 2 * inner, 1);
  steps.then(activation("shared block activation", w.precision, w.tokens(), inner, true));
  row_forward(steps, w, block_matrix(task, "shared block down", inner, model.hidden),
              RowOutput::kReduced);
  local_forward(steps, w, block_matrix(task, "shared block output", model.hidden, model.hidden),
                rows);
}

}  // namespace

const Mixer& shared_block() {
  static const SharedBlock mixer;
  return mixer;
}

}  // namespace orrery
