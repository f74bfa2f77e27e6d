// SPDX-License-Identifier: Apache-2.0
// Attention of a decoder's tokens to the output of the encoder (T5, arXiv 1910.10683).
#include <optional>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/software/training_switches.h"

namespace orrery {
namespace {

Linear cross_linear(const LayerTask& task, const char* name, std::int64_t in, std::int64_t out) {
  return {name,
          in,
          out,
          task.work.formats.precision,
          task.weights(task.layer.attention),
          std::nullopt,
          task.attention().qkv_bias ? Bias::kAdded : Bias::kNone};
}

Linear cross_query_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return cross_linear(task, "cross query", task.model.hidden, shape.query_heads * shape.qk_dim);
}

Linear cross_key_value_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return cross_linear(task, "cross key-value", task.model.hidden,
                      shape.kv_heads * (shape.qk_dim + shape.v_dim));
}

Linear cross_output_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  Linear output =
      cross_linear(task, "cross output", shape.query_heads * shape.v_dim, task.model.hidden);
  output.bias = task.attention().output_bias ? Bias::kPassedOn : Bias::kNone;
  return output;
}

/// Attention of a decoder's tokens to all of the encoder's.
RankWork to_encoder(RankWork work) {
  work.place.to_encoder = true;
  work.batch.context = work.batch.encoder;
  return work;
}

Tensor cross_norm_input(const LayerTask& task) {
  return kept::of_layer("norm input", task,
                        real(task.work.row_tokens() * task.model.hidden) * task.bytes());
}

Tensor cross_input(const LayerTask& task) {
  return kept::of_layer(
      "query input", task,
      real(task.work.row_tokens() * task.model.hidden) * kept::input_bytes(task.work));
}

/// Kept by the first layer of a chunk that sees it.
Tensor encoder_output(const LayerTask& task) {
  const std::int64_t rows = encoder_work(task.work).row_tokens();
  const double bytes = task.work.passes.keeps_encoder_output ? task.bytes() : 0;
  return {"encoder output", Bytes(real(rows * task.model.hidden) * bytes), TensorRole::kActivation};
}

std::vector<LayerOp> key_value_ops(const LayerTask& task) {
  return {column_op({cross_key_value_of(task)}, task.model.hidden)};
}

std::vector<LayerOp> core_ops(const LayerTask& task) {
  const AttentionPart all = task.work.batch.attention_parts().front();
  return {{[=](StepList& steps, const LayerTask& of) { attention_core_forward(steps, of, all); },
           attention_core_backward,
           {},
           {kept::output_projection_input}}};
}

/// Gradients of the encoder's output are added up over layers.
LayerOp gradient_addition(const LayerTask& task) {
  const double bytes = task.bytes();
  return {
      {},
      kernels({elementwise("cross encoder gradient addition", encoder_work(task.work).row_tokens(),
                           task.model.hidden, {2 * bytes, bytes, 1})}),
      {},
      {},
      {encoder_output}};
}

}  // namespace

std::vector<LayerOp> cross_half(const LayerTask& task) {
  LayerOp query = column_op({cross_query_of(task)}, task.model.hidden);
  query.keeps = {cross_input};
  LayerOp key_value = with_work(encoder_work, key_value_ops);
  key_value.makes = {encoder_output};
  std::vector<LayerOp> all;
  append(all, GraphPart::kAttention,
         {norm_op("cross norm", task, PastBlock::kGradient, {cross_norm_input}), std::move(query),
          gradient_addition(task), std::move(key_value), with_work(to_encoder, core_ops),
          core_output_op(cross_output_of(task)),
          residual_output("cross residual", task, task.work.row_tokens(),
                          kept::attention_residual_mask, kept::attention_half_output)});
  return all;
}

}  // namespace orrery
