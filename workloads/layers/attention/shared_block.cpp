// SPDX-License-Identifier: Apache-2.0
// Zamba2's blocks (arXiv 2411.15242; transformers, modular_zamba2.py): attention to the residual
// stream beside the embeddings, twice the model's width, and a gated MLP behind it without a
// residual. A few blocks serve many layers in turn; each use has a matrix behind it, adapters of
// its own and a KV cache of its own. What it gives goes into the Mamba layer behind it. Kernels are
// those of vLLM (model_executor/models/zamba2.py), where adapters are products of their own; their
// gradients follow from them, an estimate, for no published software trains the model. Gradients of
// shared weights are added up over their uses, which all have to be on one pipeline stage.
#include <fmt/core.h>

#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/attention/grouped_attention.h"
#include "workloads/layers/parts/layer_op.h"
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

// Tensors that forward passes leave.

Tensor block_rows(const char* name, const LayerTask& task, std::int64_t rows, std::int64_t columns,
                  double bytes) {
  return kept::of_layer(name, task, real(rows * columns) * bytes);
}

/// The residual stream beside the embeddings, in front of the norm and behind it.
Tensor joined_input(const LayerTask& task) {
  return block_rows("shared block joined input", task, task.work.row_tokens(),
                    joined_columns(task.model), task.bytes());
}
Tensor joined_normed(const LayerTask& task) {
  return block_rows("shared block qkv input", task, task.work.row_tokens(),
                    joined_columns(task.model), kept::input_bytes(task.work));
}
Tensor block_mlp_norm_input(const LayerTask& task) {
  return block_rows("shared block mlp norm input", task, task.work.row_tokens(), task.model.hidden,
                    task.bytes());
}
Tensor block_mlp_input(const LayerTask& task) {
  return block_rows("shared block mlp input", task, task.work.row_tokens(), task.model.hidden,
                    kept::input_bytes(task.work));
}
/// In front of the function of the MLP and behind it.
Tensor block_function_input(const LayerTask& task) {
  return block_rows("shared block function input", task, task.work.tokens(),
                    2 * (task.model.mlp.intermediate / task.work.split.tp), task.bytes());
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
                    (block.attention_adapters ? 4 : 1) * block.adapter_rank, task.bytes());
}

/// What an adapter adds to what its matrix gives. Its gradient is added to that of the matrix.
LayerOp adapter_op(const LayerTask& task, const std::string& name, const BlockAdapter& adapter) {
  const std::int64_t tokens = task.work.tokens();
  const double bytes = task.bytes();
  const Linear &down = adapter.down, &up = adapter.up;
  const GemmShape first{tokens, down.out, down.in};
  const GemmShape second{tokens, up.out / adapter.count, up.in, adapter.count};
  const auto addition = [&](const char* what, std::int64_t width) {
    return elementwise(name + what, tokens, width, {2 * bytes, bytes, 1});
  };
  const Kernel sum = addition(" gradient addition", down.in);
  return {kernels({gemm(down.name, down.precision, first), gemm(up.name, up.precision, second),
                   addition(" addition", up.out)}),
          [=](StepList& steps, const LayerTask& of) {
            batched_backward(steps, of.work, up.name, second);
            batched_backward(steps, of.work, down.name, first);
            steps.then(sum);
          }};
}

LayerOp block_norm(const LayerTask& task, const std::string& name, std::int64_t columns) {
  const RankWork& w = task.work;
  return {kernels({norm(name, w.normed_precision(), {w.row_tokens(), columns, false, false})}),
          kernels({norm_gradient(name + " backward", w.row_tokens(), columns, task.bytes())})};
}

/// The residual stream beside the embeddings, and the gradients of both, added to what they have.
LayerOp join(const LayerTask& task) {
  const double bytes = task.bytes();
  const auto pass = [&](const char* name, StreamCost cost) {
    return kernels({elementwise(name, task.work.row_tokens(), joined_columns(task.model), cost)});
  };
  return {pass("shared block concatenation", {bytes, bytes, 0}),
          pass("shared block gradient addition", {2 * bytes, bytes, 1}),
          {},
          {kept::layer_input, joined_input}};
}

LayerOp block_activation(const LayerTask& task) {
  const RankWork& w = task.work;
  const std::int64_t width = block_down(task).in;
  return {
      kernels(
          {activation("shared block activation", w.formats.precision, w.tokens(), width, true)}),
      kernels({activation_backward("shared block activation backward", task, w.tokens(), width)}),
      {block_function_input},
      {block_down_input, block_adapter_columns}};
}

class SharedBlock final : public GroupedAttention {
 public:
  std::string name() const override { return "shared block"; }
  std::string sizes(const LlmConfig& model, const LayerConfig& layer) const override {
    return fmt::format("{}{}, MLP {}", layer.shares_weights ? " again, attention" : ", attention",
                       attention_sizes(model, layer), model.mlp.intermediate);
  }
  bool norms_input() const override { return true; }
  PartWeights weights(const LayerTask& task) const override {
    const auto add_adapter = [](PartWeights& all, const BlockAdapter& adapter) {
      all.matrices.insert(all.matrices.end(), {adapter.down, adapter.up});
    };
    PartWeights all;
    if (!task.layer.shares_weights) {
      all.matrices = block_linears(task);
      all.whole_vectors = joined_columns(task.model) + task.model.hidden;
    }
    all.matrices.push_back(block_output(task));
    if (task.model.shared_block.adapter_rank > 0) add_adapter(all, mlp_adapter(task));
    if (task.model.shared_block.attention_adapters) add_adapter(all, qkv_adapter(task));
    return all;
  }

  /// Products with weights that count as another layer's.
  double multiply_adds(const LlmConfig& model, const LayerConfig& layer) const override {
    const RankWork whole;
    double elements = 0;
    if (layer.shares_weights)
      for (const Linear& linear : block_linears({model, layer, whole}))
        elements += real(linear.in * linear.out);
    return elements;
  }
  void require_split(const LlmConfig& model, const LayerConfig& layer, int tp) const override {
    GroupedAttention::require_split(model, layer, tp);
    require_divides(model.mlp.intermediate, tp, "tp", "columns of the MLP");
  }
  std::vector<LayerOp> ops(const LayerTask& task) const override {
    const SharedBlockConfig& block = task.model.shared_block;
    const std::int64_t joined = joined_columns(task.model), hidden = task.model.hidden;
    const RowOutput output = row_reduction(task.work);
    const auto core = [this](StepList& steps, const LayerTask& of) { core_backward(steps, of); };
    LayerOp qkv = column_op({block_qkv(task)}, joined, {block_adapter_columns});
    qkv.keeps = {joined_normed};
    LayerOp qkv_adapters, mlp_adapters;
    if (block.attention_adapters)
      qkv_adapters = adapter_op(task, "shared block qkv adapter", qkv_adapter(task));
    if (block.adapter_rank > 0)
      mlp_adapters = adapter_op(task, "shared block mlp adapter", mlp_adapter(task));
    qkv_adapters.needs = {block_adapter_columns};
    LayerOp input_norm = block_norm(task, "shared block input norm", joined);
    input_norm.needs = {joined_input};
    LayerOp mlp_norm = block_norm(task, "shared block mlp norm", hidden);
    mlp_norm.keeps = {block_mlp_norm_input};
    LayerOp gate_up = column_op({block_gate_up(task)}, hidden);
    gate_up.keeps = {block_mlp_input};
    LayerOp last = local_op(block_output(task), task.work.row_tokens());
    last.keeps = {block_output_input};
    return {join(task),
            std::move(input_norm),
            std::move(qkv),
            std::move(qkv_adapters),
            rotary_op(task),
            {parts_forward(), core, {}, {kept::output_projection_input}},
            core_output_op(block_attention_output(task), output),
            std::move(mlp_norm),
            std::move(gate_up),
            std::move(mlp_adapters),
            block_activation(task),
            row_op(block_down(task), {block_down_input}, output),
            std::move(last)};
  }
};

const SharedBlock shared_block{};
const AddedMixer added_shared_block(MixerKind::kSharedBlock, shared_block);

}  // namespace

}  // namespace orrery
