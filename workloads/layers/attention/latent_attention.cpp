// SPDX-License-Identifier: Apache-2.0
// Multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1). Down-projections to the
// latents are small and every tensor parallel rank holds them whole, as in Megatron-LM;
// up-projections are split by heads.
#include "workloads/layers/attention/latent_attention.h"

#include <algorithm>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/base/require.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/attention/grouped_attention.h"
#include "workloads/layers/parts/layer_op.h"
#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

Linear latent_down_of(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t key_value = a.kv_lora_rank + a.qk_rope_head_dim;
  Linear down = mixer_matrix(task, "latent down", task.model.hidden, a.q_lora_rank + key_value,
                             MatrixSplit::kNone);
  down.adapted = AdaptedMatrix{};
  if (a.q_lora_rank > 0) down.parts.push_back({a.q_lora_rank, LoraModule::kQAProj});
  down.parts.push_back({key_value, LoraModule::kKvAProj});
  return down;
}

/// Whether a matrix of queries and one of keys and values make their latents, each with its norm.
bool projects_apart(const LayerTask& task) {
  const bool training = task.work.trains();
  return training && task.work.software->latent_projections.value == Fusion::kApart;
}

/// Matrices that read the hidden state for latents: of queries, where these have some, and of keys
/// and values, or both in one.
std::vector<Linear> downs_of(const LayerTask& task) {
  const Linear joined = latent_down_of(task);
  if (!projects_apart(task) || joined.parts.size() == 1) return {joined};
  const auto apart = [&](const char* name, const MatrixPart& part) {
    Linear down = mixer_matrix(task, name, joined.in, part.out, joined.split);
    down.adapted = AdaptedMatrix{part.module};
    return down;
  };
  return {apart("query latent down", joined.parts[0]),
          apart("key-value latent down", joined.parts[1])};
}

Linear key_value_of(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  Linear up = mixer_matrix(task, "key-value up", a.kv_lora_rank,
                           core_shape(task).query_heads * (a.qk_nope_head_dim + a.v_head_dim),
                           MatrixSplit::kColumns);
  up.adapted = AdaptedMatrix{LoraModule::kKvBProj};
  return up;
}

Linear latent_output_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  Linear output = mixer_matrix(task, "attention output", shape.query_heads * shape.v_dim,
                               task.model.hidden, MatrixSplit::kRows);
  output.adapted = AdaptedMatrix{LoraModule::kOProj};
  return output;
}

void down_forward(StepList& steps, const LayerTask& task) {
  for (const Linear& down : downs_of(task))
    local_forward(steps, task.work, down, task.work.row_tokens());
}

LayerOp latent_norm(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t rows = task.work.row_tokens(), width = a.q_lora_rank + a.kv_lora_rank;
  Kernel norm = rms_norm_of("latent norm", rows, width, task.bytes());
  Kernel gradient = norm_gradient("latent norm backward", rows, width, task.bytes());
  norm.launches = gradient.launches = std::ssize(downs_of(task));
  return {kernels({std::move(norm)}),
          kernels({std::move(gradient)}),
          {kept::latent_norm_input},
          {kept::latents}};
}

/// Rotates its part of queries and keys and writes both out with the part that is not rotated, for
/// the core to read as one; in inference it also writes the latents to the cache.
Kernel assemble(const LayerTask& task, std::int64_t tokens) {
  const RankWork& w = task.work;
  const CoreShape shape = core_shape(task);
  const double bytes = activation_bytes(w.formats.precision);
  Kernel kernel =
      elementwise("rotary", tokens, 2 * shape.query_heads * shape.qk_dim, {bytes, bytes, 0});
  if (task.attention().rotates)
    kernel.vector_flops = Flops(real(tokens * 2 * shape.query_heads) *
                                real(task.attention().qk_rope_head_dim) * vector_cost::kRotary);
  if (!w.trains())
    kernel.written += Bytes(real(tokens * task.attention().kv_elements_per_token()) *
                            element_bytes(w.formats.kv_precision));
  return kernel;
}

/// Decode never expands the cache: queries are brought into the latent space (the key up-projection
/// is absorbed into them), all heads attend to one shared latent key of kv_lora + rope columns
/// whose first kv_lora columns are the value, and the result is brought back by the value
/// up-projection.
void absorbed_core(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const AttentionConfig& a = task.attention();
  const RankWork& w = task.work;
  const std::int64_t heads = core_shape(task).query_heads;
  const std::int64_t key = a.kv_lora_rank + a.qk_rope_head_dim;
  const Precision precision = unquantised(w.formats.precision);
  const std::int64_t tokens = part.sequences * part.query;
  absorb_queries(steps, task, tokens);
  gather_queries(steps, task, tokens, key);

  const AttentionPart cached = cached_part(part, w);
  AttentionCore core;
  core.kind = KernelClass::kMlaDecode;
  core.precision = precision;
  core.sequences = part.sequences;
  core.heads = heads * w.split.dcp;
  core.kv_heads = 1;
  core.query = part.query;
  core.context = cached.context;
  core.contexts = cached.contexts;
  queries_as_heads(core);
  core.window = task.layer.window;
  core.qk_dim = key;
  core.v_dim = a.kv_lora_rank;
  core.latent = true;
  core.wide_queries = element_bytes(w.formats.kv_precision) < 2;
  core.new_bytes = core.cache_bytes = element_bytes(w.formats.kv_precision);
  core.wide_queries = core.cache_bytes < element_bytes(precision);
  steps.then(flash_attention("attention", core));
  combine_heads(steps, task, tokens, a.kv_lora_rank);
  combine_contexts(steps, task, tokens, a.kv_lora_rank);
  expand_values(steps, task, tokens);
}

PromptSum prompts_of(const AttentionPart& part) {
  PromptSum sum;
  if (part.prompts.empty()) sum.add({part.sequences, part.query, part.context});
  for (const Prompts& prompts : part.prompts) sum.add(prompts);
  return sum;
}

/// Keys and values of `rows` tokens, from their latents.
void expand_latents(StepList& steps, const RankWork& work, const Linear& up, std::int64_t rows) {
  quantise_input(steps, work, up, rows);
  widen_frozen(steps, work, up);
  steps.then(gemm(up.name, up.precision, {rows, up.out, up.in}, up.weights));
  adapter_forward(steps, work, up, rows);
}

void expanded_core(StepList& steps, const LayerTask& task, const AttentionPart& part) {
  const AttentionConfig& a = task.attention();
  const RankWork& w = task.work;
  const Linear up = key_value_of(task);
  const PromptSum all = prompts_of(part);
  const std::int64_t earlier = part.context - part.query;
  gather_keys(steps, task, part, a.kv_elements_per_token(), cached_keys(earlier, w.split.dcp));
  if (w.split.dcp > 1 && earlier > 0) {
    steps.then(LayerCollective{"latents all-gather", TransferKind::kAllGather,
                               Scope::kDecodeContext,
                               Bytes(real(part.sequences * earlier * a.kv_elements_per_token()) *
                                     element_bytes(w.formats.kv_precision))});
  }
  // Earlier tokens of a prefill are expanded from the cache as well, by each rank for its heads.
  const std::int64_t keys = w.split.cp == 1 ? all.keys : gathered_keys(part, w);
  expand_latents(steps, w, up, keys);
  const AttentionPart own = own_part(part, w);
  if (w.trains()) {
    rotate_trained(steps, task, true);
  } else {
    steps.then(assemble(task, w.split.cp == 1 ? all.tokens : own.sequences * own.query));
  }
  attention_core_forward(steps, task, own);
}

/// Columns of the sigmoid gates of what heads give, from the layer's input.
Linear latent_gate_of(const LayerTask& task) {
  const CoreShape shape = core_shape(task);
  return mixer_matrix(task, "attention gate projection", task.model.hidden,
                      shape.query_heads * shape.v_dim, MatrixSplit::kColumns);
}

/// What selective recomputation makes again of queries, keys and values.
void up_again(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  if (!w.recomputes(RecomputeModule::kMlaUpProj)) return;
  const Linear up = key_value_of(task);
  cast(steps, w, up, Cast::kNormed, w.row_tokens());
  column_forward(steps, w, {query_up(task)}, latent_width(task));
  expand_latents(steps, w, up, w.tokens());
  rotate_trained(steps, task, true);
  makes(steps, task.again(), {kept::queries_keys_values});
}

const LatentAttention latent_attention{};
const AddedMixer added_latent_attention(MixerKind::kAttention, latent_attention,
                                        AttentionKind::kLatent);

}  // namespace

// The latents of queries (or the hidden state, where queries have none) and of keys and values,
// with the rotary key.
std::int64_t latent_width(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const std::int64_t query = a.q_lora_rank > 0 ? a.q_lora_rank : task.model.hidden;
  return query + a.kv_lora_rank + a.qk_rope_head_dim;
}

Linear query_up(const LayerTask& task) {
  const AttentionConfig& a = task.attention();
  const CoreShape shape = core_shape(task);
  const bool latent = a.q_lora_rank > 0;
  Linear up = mixer_matrix(task, "query up", latent ? a.q_lora_rank : task.model.hidden,
                           shape.query_heads * shape.qk_dim, MatrixSplit::kColumns);
  up.adapted = AdaptedMatrix{latent ? LoraModule::kQBProj : LoraModule::kQProj};
  return up;
}

void absorb_queries(StepList& steps, const LayerTask& task, std::int64_t tokens) {
  const AttentionConfig& a = task.model.attention;
  const RankWork& w = task.work;
  const std::int64_t heads = core_shape(task).query_heads;
  const double bytes = activation_bytes(w.formats.precision);
  steps.then(gemm("query absorb", unquantised(w.formats.precision),
                  {tokens, a.kv_lora_rank, a.qk_nope_head_dim, heads}));
  Kernel rotary = elementwise("rotary", tokens, (heads + 1) * a.qk_rope_head_dim,
                              {bytes, bytes, a.rotates ? vector_cost::kRotary : 0});
  rotary.read += Bytes(real(tokens * a.kv_lora_rank) * bytes);
  rotary.written += Bytes(real(tokens * (a.kv_lora_rank + a.qk_rope_head_dim)) *
                          element_bytes(w.formats.kv_precision));
  steps.then(rotary);
}

void expand_values(StepList& steps, const LayerTask& task, std::int64_t tokens) {
  const AttentionConfig& a = task.model.attention;
  steps.then(gemm("value up", unquantised(task.work.formats.precision),
                  {tokens, a.v_head_dim, a.kv_lora_rank, core_shape(task).query_heads}));
}

SequenceCache LatentAttention::cache(const LlmConfig& model, const LayerConfig& /*layer*/,
                                     int /*tp*/) const {
  return {model.attention.kv_elements_per_token(), 0};
}

std::vector<KeyTerm> LatentAttention::key_terms(const LlmConfig& model,
                                                const LayerConfig& layer) const {
  const AttentionConfig& a = model.attention_of(layer);
  return {{real(a.heads * (a.qk_nope_head_dim + a.qk_rope_head_dim + a.v_head_dim)), 0}};
}

std::int64_t LatentAttention::widest(const LayerTask& task) const {
  const CoreShape c = core_shape(task);
  return (c.query_heads + 2 * c.kv_heads) * std::max(c.qk_dim, c.v_dim);
}

void LatentAttention::require_split(const LlmConfig& model, const LayerConfig& /*layer*/,
                                    int tp) const {
  require_divides(model.attention.heads, tp, "tp", "attention heads");
}

void LatentAttention::part_forward(StepList& steps, const LayerTask& task,
                                   const AttentionPart& part) const {
  part.phase == Phase::kDecode ? absorbed_core(steps, task, part)
                               : expanded_core(steps, task, part);
}

PartWeights LatentAttention::weights(const LayerTask& task) const {
  const AttentionConfig& a = task.attention();
  PartWeights all{downs_of(task)};
  all.matrices.insert(all.matrices.end(), {query_up(task), key_value_of(task)});
  if (a.output_gate) all.matrices.push_back(latent_gate_of(task));
  all.matrices.push_back(latent_output_of(task));
  all.whole_vectors = a.q_lora_rank + a.kv_lora_rank;  // norms of latents
  return all;
}

void LatentAttention::heads_forward(StepList& steps, const LayerTask& task) const {
  const RankWork& w = task.work;
  if (!absorbs(task)) cast(steps, w, key_value_of(task), Cast::kNormed, w.row_tokens());
  column_forward(steps, w, {query_up(task)}, latent_width(task));
  beside_queries(steps, task);
  parts_forward()(steps, task);
}

void LatentAttention::heads_backward(StepList& steps, const LayerTask& task) const {
  attention_core_backward(steps, task);
  rotate_trained(steps, task, false);
  column_backward(steps, task.work, {query_up(task), key_value_of(task)}, latent_width(task));
}

void LatentAttention::down_backward(StepList& steps, const LayerTask& task) const {
  const AttentionConfig& a = task.attention();
  const RankWork& w = task.work;
  const double bytes = activation_bytes(w.formats.precision);
  norm_again(steps, task, "attention norm");
  beside_latents_backward(steps, task);
  const auto pass = [&](const char* name, std::int64_t width, StreamCost cost) {
    steps.then(elementwise(name, w.row_tokens(), width, cost));
  };
  // The gradients of a split, of the latents of keys and values and of the rotary key.
  if (projects_apart(task))
    pass("latent gradient copy", a.kv_lora_rank + a.qk_rope_head_dim, {bytes, bytes, 0});
  for (const Linear& down : downs_of(task)) local_backward(steps, w, down, w.row_tokens());
  // Queries and keys have the hidden state as input.
  if (projects_apart(task))
    pass("latent input gradient add", task.model.hidden, {2 * bytes, bytes, 1});
}

std::vector<LayerOp> LatentAttention::ops(const LayerTask& task) const {
  const auto downs = [this](StepList& steps, const LayerTask& of) { down_backward(steps, of); };
  const auto heads = [this](StepList& steps, const LayerTask& of) { heads_forward(steps, of); };
  const auto heads_gradient = [this](StepList& steps, const LayerTask& of) {
    heads_backward(steps, of);
  };
  const Linear output = latent_output_of(task);
  LayerOp again{{}, absorbs(task) ? LayerOp::Emit() : up_again};
  again.makes = {kept::output_projection_input};
  return {{down_forward, downs, {kept::attention_input}},
          latent_norm(task),
          {heads, heads_gradient, {}, {}, {kept::latents}},
          task.attention().output_gate ? column_op({latent_gate_of(task)}, task.model.hidden)
                                       : LayerOp(),
          output_gate(task),
          std::move(again),
          absorbs(task) ? row_op(output, {kept::output_projection_input}) : core_output_op(output)};
}

}  // namespace orrery
