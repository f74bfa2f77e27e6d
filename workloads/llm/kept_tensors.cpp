// SPDX-License-Identifier: Apache-2.0
#include "workloads/llm/kept_tensors.h"

#include <optional>

#include "workloads/llm/experts/expert_rows.h"
#include "workloads/llm/kernels.h"
#include "workloads/llm/real.h"
#include "workloads/llm/residuals.h"

namespace orrery {

namespace kept {

double input_bytes(const LayerWork& work, std::optional<LoraModule> module) {
  if (work.lora.trains)
    return module && work.lora.changes_module(*module) ? activation_bytes(work.precision) : 0;
  return work.narrow_inputs ? 1 : activation_bytes(work.precision);
}

Tensor of_layer(const char* name, const LayerTask& task, double bytes) {
  const bool again = task.work.recompute == Recompute::kFull;
  return {name, Bytes(bytes), again ? TensorRole::kWorking : TensorRole::kActivation};
}

}  // namespace kept

namespace {

using kept::input_bytes;
using kept::of_layer;

double bytes_of(const LayerTask& task) { return activation_bytes(task.work.precision); }

/// A tensor that is made again with one of these parts as well.
Tensor of_modules(Tensor tensor, const LayerTask& task,
                  std::initializer_list<RecomputeModule> modules) {
  for (const RecomputeModule module : modules)
    if (task.work.recomputes(module)) tensor.role = TensorRole::kWorking;
  return tensor;
}

/// The share of a tensor that stays where products are recomputed selectively: `wide` of products
/// in 16 bits, of which every second one is kept; of narrow ones none.
double kept_of(const LayerTask& task, double wide) {
  if (!task.work.recomputes_products()) return 1;
  return element_bytes(task.work.precision) < 2 ? 0 : wide;
}

/// [rows, hidden] of `element` bytes, where the layer has `there`.
Tensor rows_of(const char* name, const LayerTask& task, double element, bool there = true) {
  const double elements = real(task.work.row_tokens() * task.model.hidden);
  return of_layer(name, task, there ? elements * element : 0);
}

/// [heads, query, context] of `element` bytes, where scores are stored.
Tensor square_of(const char* name, const LayerTask& task, double element) {
  const LayerWork& w = task.work;
  const double elements =
      real(w.sequences * core_shape(task).query_heads) * real(w.query) * real(w.context);
  return of_modules(of_layer(name, task, w.flash_attention ? 0 : elements * element), task,
                    {RecomputeModule::kCoreAttn});
}

bool has_output_norms(const LayerTask& task) { return task.model.norms_per_layer >= 4; }

/// Whether the MLP reads the norm that attention reads.
bool shares_norm(const LayerTask& task) {
  return task.model.parallel_block && task.model.norms_per_layer == 1;
}

/// Whether attention is absorbed into the latent space (sparse_training.h).
bool attends_to_latents(const LayerTask& task) {
  return task.layer.mixer == MixerKind::kSparse || task.layer.mixer == MixerKind::kSharedSparse;
}

/// Whether something multiplies what heads give, whose gradient needs that as it was.
bool gates_result(const LayerTask& task) {
  return task.attention().output_gate || task.attention().head_gate;
}

std::int64_t result_columns(const LayerTask& task) {
  const CoreShape core = core_shape(task);
  return core.query_heads * core.v_dim;
}

double function_columns(const LayerTask& task) { return task.model.mlp.gated ? 2 : 1; }

double routed_rows(const LayerTask& task) {
  return real(task.work.split_tokens()) * real(task.model.moe.experts_per_token) * skew_of(task);
}

/// Elements in front of the function of shared experts and behind it.
double shared_elements(const LayerTask& task) {
  return real(task.work.split_tokens()) * real(task.model.moe.shared_intermediate);
}

double vocabulary_elements(const LlmConfig& model, const LayerWork& work) {
  return real(work.tokens()) * real((model.vocabulary + work.tp - 1) / work.tp);
}

void tell(StepList& steps, const LayerTask& task, TensorEvent::What what,
          std::initializer_list<KeptTensor> tensors) {
  if (!steps.tells_tensors()) return;
  for (const KeptTensor tensor : tensors) steps.tell(what, tensor(task));
}

}  // namespace

void makes(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors) {
  for (const KeptTensor tensor : tensors) {
    const bool again = tensor(task).role == TensorRole::kWorking;
    if (again == (task.forward == Forward::kAgain))
      tell(steps, task, TensorEvent::What::kMakes, {tensor});
  }
}

void uses(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors) {
  tell(steps, task, TensorEvent::What::kUses, tensors);
}

void frees(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors) {
  tell(steps, task, TensorEvent::What::kFrees, tensors);
}

namespace kept {

Tensor layer_input(const LayerTask& task) {
  Tensor tensor = rows_of("layer input", task, bytes_of(task));
  // What is mixed of the layer's residuals is made again with all of it.
  if (!mixes_residuals(task))
    tensor.role = task.work.input_again ? TensorRole::kWorking : TensorRole::kActivation;
  return tensor;
}

Tensor mlp_norm_input(const LayerTask& task) {
  // Parallel blocks have the layer's input in front of all norms.
  return rows_of("mlp norm input", task, kept_of(task, 0) * bytes_of(task),
                 !task.model.parallel_block);
}

Tensor attention_output_norm_input(const LayerTask& task) {
  return rows_of("attention output norm input", task, bytes_of(task), has_output_norms(task));
}

Tensor mlp_output_norm_input(const LayerTask& task) {
  return rows_of("mlp output norm input", task, bytes_of(task), has_output_norms(task));
}

Tensor attention_residual_mask(const LayerTask& task) {
  return rows_of("attention residual mask", task, 1, task.work.dropout);
}

Tensor mlp_residual_mask(const LayerTask& task) {
  return rows_of("mlp residual mask", task, 1, task.work.dropout);
}

Tensor attention_input(const LayerTask& task) {
  const bool attends = task.layer.mixer == MixerKind::kAttention;
  const double element = kept_of(task, 0) * (attends ? input_bytes(task.work, LoraModule::kQkvProj)
                                                     : input_bytes(task.work));
  return of_modules(rows_of("attention input", task, element), task, {RecomputeModule::kLayernorm});
}

Tensor latent_norm_input(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const double columns = real(a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim);
  return of_layer("latent norm input", task,
                  real(task.work.row_tokens()) * columns * bytes_of(task));
}

Tensor latents(const LayerTask& task) {
  // Attention in the latent space keeps the latents of keys and values as its keys.
  const AttentionConfig& a = task.attention();
  const std::int64_t columns = a.q_lora_rank + (attends_to_latents(task) ? 0 : a.kv_lora_rank);
  return of_layer("latents", task, real(task.work.row_tokens() * columns) * input_bytes(task.work));
}

Tensor unnormed_heads(const LayerTask& task) {
  // Values that are keys are so in front of their norms.
  const CoreShape c = core_shape(task);
  const AttentionConfig& a = task.attention();
  const bool twice = a.qk_norm && a.value_norm && a.values_of_keys;
  const double columns = real(normed_heads_width(task) - (twice ? c.kv_heads * c.v_dim : 0));
  return of_layer("queries and keys before norm", task,
                  kept_of(task, 1) * real(task.work.tokens()) * columns * bytes_of(task));
}

Tensor queries_keys_values(const LayerTask& task) {
  const CoreShape c = core_shape(task);
  const LayerWork& w = task.work;
  const double keys = real(w.to_encoder ? w.sequences * w.encoder : w.tokens());
  const double elements = real(w.tokens()) * real(c.query_heads * c.qk_dim) +
                          keys * real(c.kv_heads * (c.qk_dim + c.v_dim));
  return of_modules(of_layer("queries, keys and values", task, elements * bytes_of(task)), task,
                    {RecomputeModule::kMlaUpProj});
}

Tensor attention_sums(const LayerTask& task) {
  const double heads = task.work.flash_attention ? real(core_shape(task).query_heads) : 0;
  return of_layer("attention sums", task, real(task.work.tokens()) * 4 * heads);
}

Tensor attention_result(const LayerTask& task) {
  const double element = task.work.flash_attention || gates_result(task) ? bytes_of(task) : 0;
  return of_layer("attention result", task,
                  real(task.work.tokens()) * real(result_columns(task)) * element);
}

Tensor output_projection_input(const LayerTask& task) {
  const LayerWork& w = task.work;
  const bool shared = w.flash_attention && (!w.narrow_inputs || w.lora.trains) &&
                      !gates_result(task) && !attends_to_latents(task);
  const double element = shared ? 0 : input_bytes(w, LoraModule::kOProj);
  return of_layer("attention output input", task,
                  real(w.tokens()) * real(result_columns(task)) * element);
}

Tensor attention_gate(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t columns = a.output_gate ? result_columns(task)
                               : a.head_gate ? core_shape(task).query_heads
                                             : 0;
  return of_layer("attention gate", task,
                  real(task.work.tokens()) * real(columns) * bytes_of(task));
}

Tensor probabilities(const LayerTask& task) {
  return square_of("probabilities", task, bytes_of(task));
}

Tensor attention_mask(const LayerTask& task) {
  return square_of("attention mask", task, task.work.dropout ? 1 : 0);
}

Tensor dropped_probabilities(const LayerTask& task) {
  return square_of("dropped probabilities", task, task.work.dropout ? bytes_of(task) : 0);
}

Tensor adapter_columns(const LayerTask& task) {
  const LayerWork& w = task.work;
  const bool attends = task.layer.mixer == MixerKind::kAttention;
  const bool feeds = task.layer.feeds && !task.layer.moe;
  const auto has = [&](LoraModule module, bool there) {
    return w.lora.trains && there && w.lora.changes_module(module) ? 1.0 : 0.0;
  };
  const double adapters = has(LoraModule::kQkvProj, attends) + has(LoraModule::kOProj, attends) +
                          has(LoraModule::kGateUpProj, feeds) + has(LoraModule::kDownProj, feeds);
  return of_layer("adapter columns", task,
                  adapters * real(w.tokens()) * real(w.lora.rank) * bytes_of(task));
}

Tensor cross_norm_input(const LayerTask& task) {
  return rows_of("norm input", task, bytes_of(task));
}

Tensor cross_input(const LayerTask& task) {
  return rows_of("query input", task, input_bytes(task.work));
}

Tensor encoder_output(const LayerTask& task) {
  const LayerWork of_encoder = encoder_work(task.work);
  const double kept = task.work.keeps_encoder_output ? bytes_of(task) : 0;
  return {"encoder output", Bytes(real(of_encoder.row_tokens() * task.model.hidden) * kept),
          TensorRole::kActivation};
}

Tensor encoder_norm_input(const LayerTask& task) {
  return {"encoder norm input",
          Bytes(real(task.work.row_tokens() * task.model.hidden) * bytes_of(task)),
          TensorRole::kActivation};
}

Tensor mlp_input(const LayerTask& task) {
  const double element = kept_of(task, 0) * input_bytes(task.work, LoraModule::kGateUpProj);
  return of_modules(rows_of("mlp input", task, element, !shares_norm(task)), task,
                    {RecomputeModule::kLayernorm});
}

Tensor mlp_function_input(const LayerTask& task) {
  const double width = real(task.mlp().intermediate) / task.work.tp;
  const double share = kept_of(task, task.model.mlp.gated ? 0.5 : 1);
  return of_modules(
      of_layer("mlp function input", task,
               share * real(task.work.tokens()) * width * function_columns(task) * bytes_of(task)),
      task, {RecomputeModule::kMlp});
}

Tensor down_input(const LayerTask& task) {
  const double width = real(task.mlp().intermediate) / task.work.tp;
  const double element = kept_of(task, 0) * input_bytes(task.work, LoraModule::kDownProj);
  return of_modules(of_layer("down input", task, real(task.work.tokens()) * width * element), task,
                    {RecomputeModule::kMlp});
}

Tensor router_input(const LayerTask& task) {
  return of_modules(of_layer("router input", task,
                             real(task.work.split_tokens()) * real(task.model.hidden) *
                                 (task.work.lora.trains ? 0 : bytes_of(task))),
                    task, {RecomputeModule::kLayernorm});
}

Tensor router_scores(const LayerTask& task) {
  return of_modules(
      of_layer("router scores", task,
               real(task.work.split_tokens()) * real(task.model.moe.experts) * bytes_of(task)),
      task, {RecomputeModule::kMoe});
}

Tensor expert_norm_inputs(const LayerTask& task) {
  const double results = task.model.moe.norms > 0 ? 2 : 0;
  return of_modules(
      of_layer("expert norm inputs", task,
               results * real(task.work.split_tokens() * task.model.hidden) * bytes_of(task)),
      task, {RecomputeModule::kMoe});
}

Tensor shared_input(const LayerTask& task) {
  const bool apart = task.work.narrow_inputs || task.model.moe.norms > 0;
  const bool copied = apart && task.model.moe.shared_intermediate > 0;
  return of_modules(of_layer("shared expert input", task,
                             real(task.work.split_tokens()) * real(task.model.hidden) *
                                 (copied ? input_bytes(task.work) : 0)),
                    task, {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_function_input(const LayerTask& task) {
  return of_modules(of_layer("shared function input", task,
                             shared_elements(task) * function_columns(task) * bytes_of(task)),
                    task, {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_down_input(const LayerTask& task) {
  return of_modules(
      of_layer("shared down input", task, shared_elements(task) * input_bytes(task.work)), task,
      {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor expert_input(const LayerTask& task) {
  return of_modules(of_layer("expert input", task,
                             routed_rows(task) * real(task.model.expert_columns()) * task.work.etp *
                                 input_bytes(task.work)),
                    task, {RecomputeModule::kMoe});
}

Tensor expert_function_input(const LayerTask& task) {
  return of_modules(of_layer("expert function input", task,
                             routed_rows(task) * real(task.model.moe.intermediate) *
                                 function_columns(task) * bytes_of(task)),
                    task, {RecomputeModule::kMoe});
}

Tensor expert_down_input(const LayerTask& task) {
  return of_modules(
      of_layer("expert down input", task,
               routed_rows(task) * real(task.model.moe.intermediate) * input_bytes(task.work)),
      task, {RecomputeModule::kMoe, RecomputeModule::kMoeAct});
}

Tensor expert_outputs(const LayerTask& task) {
  const bool weighted = task.work.software->experts.gate_weights.value == GateWeights::kResults;
  const int copies = !weighted ? 0 : task.work.ep == 1 ? task.work.etp : 1;
  return of_modules(
      of_layer("expert outputs", task,
               routed_rows(task) * real(task.model.expert_columns()) * copies * bytes_of(task)),
      task, {RecomputeModule::kMoe});
}

Tensor expert_sums(const LayerTask& task) {
  return of_modules(of_layer("expert sums", task,
                             real(task.work.split_tokens()) * real(task.model.moe.latent) *
                                 input_bytes(task.work)),
                    task, {RecomputeModule::kMoe});
}

Tensor logits(const LlmConfig& model, const LayerWork& work) {
  return {"logits", Bytes(vocabulary_elements(model, work) * activation_bytes(work.precision)),
          TensorRole::kLogits};
}

Tensor loss_probabilities(const LlmConfig& model, const LayerWork& work) {
  return {"loss probabilities", Bytes(vocabulary_elements(model, work) * 4), TensorRole::kLogits};
}

}  // namespace kept
}  // namespace orrery
