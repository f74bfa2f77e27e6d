// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/parts/kept_tensors.h"

#include <algorithm>

#include "workloads/base/real.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/software/training_software.h"

namespace orrery {

namespace kept {

Tensor of_modules(Tensor tensor, const LayerTask& task,
                  std::initializer_list<RecomputeModule> modules) {
  for (const RecomputeModule module : modules)
    if (task.work.recomputes(module)) tensor.role = TensorRole::kWorking;
  return tensor;
}

bool saves_by_operator(const LayerTask& task) {
  return task.work.software->saved_tensors.value == SavedTensors::kOperators;
}

double function_columns(const LayerTask& task) {
  if (!task.model.mlp.gated) return 1;
  return saves_by_operator(task) && !task.work.recomputes_products() ? 3 : 2;
}

double routed_rows(const LayerTask& task) {
  return real(task.work.split_tokens()) * real(task.model.moe.experts_per_token) * skew_of(task);
}

namespace {

std::int64_t adapters_among(const RankWork& work, std::initializer_list<LoraModule> readers) {
  return std::ranges::count_if(readers,
                               [&](LoraModule module) { return work.lora.changes_module(module); });
}

/// Bytes per element of the copies, with their masks, that adapters with dropout read.
double dropped_bytes(const RankWork& work, std::initializer_list<LoraModule> readers) {
  if (!work.lora.trains || !work.lora.drops) return 0;
  return real(adapters_among(work, readers)) * (activation_bytes(work.formats.precision) + 1);
}

}  // namespace

double input_bytes(const RankWork& work, std::initializer_list<LoraModule> readers) {
  if (!work.lora.trains)
    return work.formats.narrow_inputs ? 1 : activation_bytes(work.formats.precision);
  const bool frozen =
      work.lora.frozen != FrozenFormat::kAsTrained && work.software->keeps_frozen_inputs.value;
  const bool adapted = !work.lora.drops && adapters_among(work, readers) > 0;
  return (frozen || adapted ? activation_bytes(work.formats.precision) : 0) +
         dropped_bytes(work, readers);
}

Tensor of_layer(const char* name, const LayerTask& task, double bytes) {
  const bool again = task.work.passes.recompute == Recompute::kFull;
  return {name, Bytes(bytes), again ? TensorRole::kWorking : TensorRole::kActivation};
}

Tensor of_tokens(const char* name, const LayerTask& task, double columns, double bytes) {
  return of_layer(name, task, real(task.work.tokens()) * columns * bytes);
}

Tensor of_tokens(const char* name, const LayerTask& task, std::int64_t columns, double bytes) {
  return of_tokens(name, task, real(columns), bytes);
}

Tensor of_modules(const char* name, const LayerTask& task, double bytes,
                  std::initializer_list<RecomputeModule> modules) {
  return of_modules(of_layer(name, task, bytes), task, modules);
}

}  // namespace kept

namespace {

using kept::function_columns;
using kept::input_bytes;
using kept::of_layer;
using kept::of_modules;
using kept::routed_rows;
using kept::saves_by_operator;

/// The share of a tensor that stays where every second product is computed again. In 8 bits
/// products are computed again all, and their inputs stay in 16 bits: peaks are those of 16 bits
/// (torchtitan on 8 and 128 H100, 77.0 and 76.8, 62.0 and 61.8 GiB; pytorch/ao docs, 47.65
/// and 47.77).
double kept_of(const LayerTask& task, double share) {
  return task.work.recomputes_products() ? share : 1;
}

/// Bytes that a root mean square norm of operators keeps of an element beside its input: what a
/// copy in fp32 is larger, and what its weight is multiplied with, where that is trained. A layer
/// norm is one operator.
double norm_values(const LayerTask& task) {
  if (!saves_by_operator(task) || task.model.norm_bias) return 0;
  const double wider = task.work.software->wide_norms.value ? 4 - task.bytes() : 0;
  return wider + (task.work.lora.trains ? 0 : task.bytes());
}

/// [rows, hidden] of `element` bytes, where the layer has `there`.
Tensor rows_of(const char* name, const LayerTask& task, double element, bool there = true) {
  const double elements = real(task.work.row_tokens() * task.model.hidden);
  return of_layer(name, task, there ? elements * element : 0);
}

/// [heads, query, context] of `element` bytes, where scores are stored.
Tensor square_of(const char* name, const LayerTask& task, double element) {
  const RankWork& w = task.work;
  const double elements = real(w.batch.sequences * core_shape(task).query_heads) *
                          real(w.batch.query) * real(w.batch.context);
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

/// [tokens, hidden] of what column-parallel products read.
Tensor gathered_rows(const char* name, const LayerTask& task, double element, bool there = true) {
  if (!task.work.software->keeps_gathered_inputs.value) return rows_of(name, task, element, there);
  const double elements = real(task.work.tokens() * task.model.hidden);
  return of_layer(name, task, there ? elements * element : 0);
}

/// Bytes an element of what the first matrices of a mixer read.
double mixer_input_bytes(const LayerTask& task) {
  const RankWork& w = task.work;
  if (task.layer.mixer != MixerKind::kAttention) return input_bytes(w);
  const AttentionConfig& a = task.attention();
  if (a.kind == AttentionKind::kGrouped && a.values_of_keys)
    return input_bytes(w, {LoraModule::kQkvProj, LoraModule::kQProj, LoraModule::kKProj});
  if (a.kind == AttentionKind::kGrouped)
    return input_bytes(
        w, {LoraModule::kQkvProj, LoraModule::kQProj, LoraModule::kKProj, LoraModule::kVProj});
  const LoraModule query = a.q_lora_rank > 0 ? LoraModule::kQAProj : LoraModule::kQProj;
  return input_bytes(w, {query, LoraModule::kKvAProj});
}

void tell(StepList& steps, const LayerTask& task, TensorEvent::What what,
          std::initializer_list<KeptTensor> tensors) {
  if (!steps.tells_tensors()) return;
  for (const KeptTensor tensor : tensors) steps.tell(what, tensor(task));
}

}  // namespace

Bytes gradient_flow(const LayerTask& task) {
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision), hidden = real(task.model.hidden);
  const Mixer* mixer = mixer_of(task.model, task.layer);
  const double columns = task.model.mlp.gated ? 2 : 1;
  const double mixing = mixer ? real(w.tokens() * mixer->widest(task)) : 0;
  double feeding = 0;
  if (task.layer.feeds && task.layer.moe) {
    const double width = real(task.model.moe.intermediate);
    feeding = routed_rows(task) * (real(task.model.expert_columns()) + (columns + 1) * width);
  } else if (task.layer.feeds) {
    feeding = real(w.tokens()) * (columns + 1) * real(task.mlp().intermediate) / w.split.tp;
  }
  // DTensor gathers ranks one behind the other and copies that into the order of tokens.
  const bool twice = w.software->keeps_gathered_inputs.value && !w.software->has_user_buffers();
  const double gathered = w.split.tp > 1 ? real(w.tokens()) * hidden * (twice ? 2 : 1) : 0;
  return Bytes((std::max(mixing, feeding) + gathered + real(w.row_tokens()) * hidden) * bytes);
}

void makes(StepList& steps, const LayerTask& task, std::initializer_list<KeptTensor> tensors) {
  if (!steps.tells_tensors()) return;  // the passes of parts alone have no tensors to ask for
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
  Tensor tensor = rows_of("layer input", task, task.bytes());
  // What is mixed of the layer's residuals is made again with all of it.
  if (!mixes_residuals(task))
    tensor.role = task.work.passes.input_again ? TensorRole::kWorking : TensorRole::kActivation;
  return tensor;
}

Tensor mlp_norm_input(const LayerTask& task) {
  // Parallel blocks have the layer's input in front of all norms.
  return rows_of("mlp norm input", task, kept_of(task, 0) * task.bytes(),
                 !task.model.parallel_block);
}

Tensor attention_norm_values(const LayerTask& task) {
  return of_modules(rows_of("attention norm values", task, kept_of(task, 0) * norm_values(task)),
                    task, {RecomputeModule::kLayernorm});
}

Tensor mlp_norm_values(const LayerTask& task) {
  return of_modules(rows_of("mlp norm values", task, kept_of(task, 0) * norm_values(task)), task,
                    {RecomputeModule::kLayernorm});
}

Tensor attention_output_norm_input(const LayerTask& task) {
  return rows_of("attention output norm input", task, task.bytes(), has_output_norms(task));
}

Tensor mlp_output_norm_input(const LayerTask& task) {
  return rows_of("mlp output norm input", task, task.bytes(), has_output_norms(task));
}

Tensor attention_residual_mask(const LayerTask& task) {
  return rows_of("attention residual mask", task, 1, task.work.passes.dropout);
}

Tensor mlp_residual_mask(const LayerTask& task) {
  return rows_of("mlp residual mask", task, 1, task.work.passes.dropout);
}

Tensor attention_input(const LayerTask& task) {
  const double element = kept_of(task, 0) * mixer_input_bytes(task);
  return of_modules(gathered_rows("attention input", task, element), task,
                    {RecomputeModule::kLayernorm});
}

Tensor latent_norm_input(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const double columns = real(a.q_lora_rank + a.kv_lora_rank + a.qk_rope_head_dim);
  return of_layer("latent norm input", task, real(task.work.row_tokens()) * columns * task.bytes());
}

Tensor latents(const LayerTask& task) {
  // Attention in the latent space keeps the latents of keys and values as its keys.
  const AttentionConfig& a = task.attention();
  const double queries = real(a.q_lora_rank) * input_bytes(task.work, {LoraModule::kQBProj});
  const double keys = attends_to_latents(task)
                          ? 0
                          : real(a.kv_lora_rank) * input_bytes(task.work, {LoraModule::kKvBProj});
  return of_layer("latents", task, real(task.work.row_tokens()) * (queries + keys));
}

Tensor unnormed_heads(const LayerTask& task) {
  // Values that are keys are so in front of their norms.
  const CoreShape c = core_shape(task);
  const AttentionConfig& a = task.attention();
  const bool twice = a.qk_norm && a.value_norm && a.values_of_keys;
  const double columns = real(normed_heads_width(task) - (twice ? c.kv_heads * c.v_dim : 0));
  const double element = task.bytes() + kept_of(task, 0) * norm_values(task);
  return of_tokens("queries and keys before norm", task, columns, element);
}

Tensor queries_keys_values(const LayerTask& task) {
  const CoreShape c = core_shape(task);
  const RankWork& w = task.work;
  const double keys = real(w.place.to_encoder ? w.batch.sequences * w.batch.encoder : w.tokens());
  // Operators copy keys and values to all heads that share them. Of three products that of keys is
  // the second.
  const bool copied =
      saves_by_operator(task) && !w.recomputes_products() && !attends_to_latents(task);
  const std::int64_t heads = copied ? c.query_heads : c.kv_heads;
  const std::int64_t columns =
      saves_by_operator(task) && w.recomputes_products() ? c.v_dim : c.qk_dim + c.v_dim;
  const bool whole = saves_by_operator(task) && w.software->keeps_packed_heads.value &&
                     c.kv_heads == c.query_heads && !w.place.to_encoder;
  const double elements = real(w.tokens()) * real(c.query_heads * c.qk_dim * (whole ? 3 : 1)) +
                          keys * real(heads * columns);
  return of_modules("queries, keys and values", task, elements * task.bytes(),
                    {RecomputeModule::kMlaUpProj});
}

Tensor attention_sums(const LayerTask& task) {
  const double heads = task.work.flash_attention ? real(core_shape(task).query_heads) : 0;
  return of_tokens("attention sums", task, heads, 4);
}

Tensor attention_result(const LayerTask& task) {
  const double element = task.work.flash_attention || gates_result(task) ? task.bytes() : 0;
  return of_tokens("attention result", task, result_columns(task), element);
}

Tensor output_projection_input(const LayerTask& task) {
  const RankWork& w = task.work;
  // Where it is attention_result, adapters with dropout still have copies of their own.
  const bool shared = w.flash_attention && (!w.formats.narrow_inputs || w.lora.trains) &&
                      !gates_result(task) && !attends_to_latents(task);
  const double element =
      shared ? kept::dropped_bytes(w, {LoraModule::kOProj}) : input_bytes(w, {LoraModule::kOProj});
  return of_tokens("attention output input", task, result_columns(task), element);
}

Tensor attention_gate(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t columns = a.output_gate ? result_columns(task)
                               : a.head_gate ? core_shape(task).query_heads
                                             : 0;
  return of_tokens("attention gate", task, columns, task.bytes());
}

Tensor probabilities(const LayerTask& task) {
  return square_of("probabilities", task, task.bytes());
}

Tensor attention_mask(const LayerTask& task) {
  return square_of("attention mask", task, task.work.passes.dropout ? 1 : 0);
}

Tensor dropped_probabilities(const LayerTask& task) {
  return square_of("dropped probabilities", task, task.work.passes.dropout ? task.bytes() : 0);
}

Tensor adapter_columns(const LayerTask& task) {
  const RankWork& w = task.work;
  double elements = w.lora.trains ? orrery::adapter_columns(task.model, task.layer, w) : 0;
  if (w.lora.trains && w.software->pads_adapters.value &&
      w.lora.changes_module(LoraModule::kQkvProj)) {
    const CoreShape c = core_shape(task);
    elements += real(w.tokens()) * real(c.query_heads * c.qk_dim + c.kv_heads * c.v_dim);
  }
  return of_layer("adapter columns", task, elements * task.bytes());
}

Tensor mlp_input(const LayerTask& task) {
  const double element =
      kept_of(task, 0) *
      input_bytes(task.work, {LoraModule::kGateUpProj, LoraModule::kGateProj, LoraModule::kUpProj});
  return of_modules(gathered_rows("mlp input", task, element, !shares_norm(task)), task,
                    {RecomputeModule::kLayernorm});
}

Tensor mlp_function_input(const LayerTask& task) {
  const double width = real(task.mlp().intermediate) / task.work.split.tp;
  const double share = kept_of(task, task.model.mlp.gated ? 0.5 : 1);
  return of_modules(
      "mlp function input", task,
      share * real(task.work.tokens()) * width * function_columns(task) * task.bytes(),
      {RecomputeModule::kMlp});
}

Tensor down_input(const LayerTask& task) {
  const double width = real(task.mlp().intermediate) / task.work.split.tp;
  const double element = kept_of(task, 0) * input_bytes(task.work, {LoraModule::kDownProj});
  return of_modules(of_tokens("down input", task, width, element), task, {RecomputeModule::kMlp});
}

Tensor down_output(const LayerTask& task) {
  const bool kept = task.work.recomputes_products() && saves_by_operator(task);
  return rows_of("down output", task, task.bytes(), kept);
}

}  // namespace kept
}  // namespace orrery
