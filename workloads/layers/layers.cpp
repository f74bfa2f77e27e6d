// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/layers.h"

#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/attention/rotary_kernels.h"
#include "workloads/layers/parallel_block.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

const KernelSwitch kPdl{"pdl", false,
                        "start kernels by programmatic dependent launch: launch and set-up run "
                        "beside the end of the kernel before (TRTLLM_ENABLE_PDL)"};

/// Tokens whose second half of the layer (MLP or experts) is this rank's.
std::int64_t second_half_rows(const LayerTask& task) {
  return task.scatters_attention() ? task.work.split_tokens() : task.work.tokens();
}

/// The norm of what a half gives (gemma2), before its residual.
LayerOp output_norm(const std::string& name, const LayerTask& task, std::int64_t rows,
                    KeptTensor input) {
  if (task.model.norms_per_layer < 4) return {};
  return {kernels({rms_norm_of(name, rows, task.model.hidden, task.bytes())}),
          kernels({norm_gradient(name + " backward", rows, task.model.hidden, task.bytes())}),
          {input}};
}

/// A norm of what an all-reduce has just added up, which is part of it where the engine has that.
Kernel norm_of_sum(const std::string& name, const LayerTask& task, bool reduced) {
  Kernel kernel = norm_forward(name, task, task.work.row_tokens());
  const double sum = real(task.work.row_tokens() * task.model.hidden) * task.bytes();
  if (!reduced || task.work.split.tp == 1 || task.model.residual_streams > 1 ||
      Bytes(sum) > task.work.normed_all_reduce)
    return kernel;
  kernel.start = KernelStart::kWithin;
  kernel.read -= Bytes(sum);
  return kernel;
}

/// Whether the gradient of what follows a half comes past it.
PastBlock past_half(const LayerTask& task) {
  return mixes_residuals(task) ? PastBlock::kNothing : PastBlock::kGradient;
}

/// The norm in front of a mixer, unless that has one of its own.
LayerOp mixer_norm(const LayerTask& task, const Mixer& mixer) {
  const std::string name = mixer.name() + " norm";
  if (mixer.norms_input())
    return {.needs = {kept::layer_input, kept::adapter_columns, kept::widened_weights}};
  LayerOp norm = norm_op(name, task, past_half(task), {kept::layer_input});
  // Behind a layer like this one, or the embedding.
  norm.forward = kernels({norm_of_sum(name, task, !task.layer.moe || all_reduces(task))});
  norm.makes = {kept::attention_norm_values, kept::attention_residual_input, kept::block_outputs};
  norm.needs = {kept::adapter_columns, kept::widened_weights, kept::attention_norm_values};
  return norm;
}

std::vector<LayerOp> mixer_half(const LayerTask& task) {
  const Mixer* mixer = mixer_of(task.model, task.layer);
  if (mixer == nullptr) return {};
  const std::int64_t rows = second_half_rows(task);
  LayerOp output = residual_output(mixer->name() + " residual", task, rows,
                                   kept::attention_residual_mask, kept::attention_half_output);
  output.makes = {kept::adapter_columns, kept::widened_weights};
  std::vector<LayerOp> all;
  append(all, GraphPart::kAttention,
         {residual_input(task, {kept::attention_residual_input, kept::block_outputs}),
          mixer_norm(task, *mixer)});
  append(all, GraphPart::kAttention, mixer->ops(task));
  append(
      all, GraphPart::kAttention,
      {output_norm(mixer->name() + " output norm", task, rows, kept::attention_output_norm_input),
       std::move(output)});
  return all;
}

/// Whether nothing that a dense MLP's last product gives is computed again.
bool stops_early(const LayerTask& task) {
  const bool needed = task.layer.moe || task.work.passes.dropout ||
                      task.model.norms_per_layer > 2 || task.model.residual_streams > 1;
  return task.forward == Forward::kAgain && !needed &&
         task.work.software->recompute_stops_early.value;
}

/// Input of the norm in front of an MLP or experts; that of the layer where nothing is before it.
KeptTensor feed_input(const LayerTask& task) {
  return task.layer.mixer == MixerKind::kNone ? kept::layer_input : kept::mlp_norm_input;
}

/// The norm in front of an MLP or experts. Parallel blocks of inference share the first norm, which
/// then is not computed again.
LayerOp feed_norm(const LayerTask& task) {
  if (task.model.norms_per_layer == 1) return {};
  LayerOp norm = norm_op("mlp norm", task, past_half(task), {feed_input(task)});
  if (task.scatters_attention())
    norm.forward = kernels({norm_forward("mlp norm", task, second_half_rows(task))});
  else
    norm.forward = kernels({norm_of_sum("mlp norm", task, true)});
  norm.makes = {kept::mlp_norm_values, kept::mlp_residual_input};
  norm.needs = {kept::mlp_norm_values};
  return norm;
}

std::vector<LayerOp> feed_half(const LayerTask& task) {
  std::vector<LayerOp> all;
  if (!task.layer.feeds) return all;
  append(all, GraphPart::kRouting,
         {residual_input(task, {kept::mlp_residual_input}), feed_norm(task)});
  if (stops_early(task)) {
    append(all, GraphPart::kOther, mlp_inner_ops(task));
    return all;
  }
  const std::int64_t rows = task.work.row_tokens();
  append(all, GraphPart::kOther, task.layer.moe ? moe_ops(task) : mlp_ops(task));
  append(all, GraphPart::kOther,
         {output_norm("mlp output norm", task, rows, kept::mlp_output_norm_input),
          residual_output("mlp residual", task, rows, kept::mlp_residual_mask,
                          kept::mlp_half_output)});
  return all;
}

/// Kernels that start before the one before has ended, where the engine has them do so.
StepList launched_early(StepList steps, const RankWork& work) {
  if (work.kernels.on(kPdl)) steps.launch_early();
  return steps;
}

/// What the mixer of a layer works with: the format in which the layer stores its matrices.
RankWork mixer_work(const LayerTask& task) {
  RankWork work = task.work;
  work.formats.precision = task.precision(task.layer.attention);
  return work;
}

StepList mixer_half_forward(const LayerTask& task) {
  const RankWork work = mixer_work(task);
  const LayerTask mixes{task.model, task.layer, work, task.forward};
  return launched_early(forward_pass(mixes, mixer_half(mixes)), work);
}

StepList feed_half_forward(const LayerTask& task) {
  return launched_early(forward_pass(task, feed_half(task)), task.work);
}

/// Columns of queries, keys and values that selective recomputation by operator computes again: the
/// second of three products, of keys; in 8 bits all, for products that scale are not among those
/// whose results stay.
Linear projected_again(const LayerTask& task, bool narrow) {
  Linear qkv = mixer_of(task.model, task.layer)->weights(task).matrices.front();
  if (narrow) return qkv;
  const CoreShape shape = core_shape(task);
  qkv.name = "key";
  qkv.out = shape.kv_heads * shape.qk_dim;
  qkv.parts = {{qkv.out, LoraModule::kKProj}};
  return qkv;
}

/// Every second product of a layer in its order (query, key, value, output; gate, up, down), and
/// what lies between them, but not the last, which gives what nobody needs.
StepList products_again(const LayerTask& task) {
  const RankWork& w = task.work;
  const std::int64_t rows = w.row_tokens();
  const bool narrow = element_bytes(w.formats.precision) < 2;
  StepList steps;
  if (const Mixer* mixer = mixer_of(task.model, task.layer)) {
    steps.then(norm_forward("attention norm", task, rows));
    column_forward(steps, w, {projected_again(task, narrow)}, task.model.hidden);
    if (const std::int64_t width = rotated_width(task); width > 0) steps.then(rotated(task, width));
    row_forward(steps, w, mixer->weights(task).matrices.back(), RowOutput::kReduced);
    run_forward(steps, task,
                {residual_output("attention residual", task, rows, kept::attention_residual_mask,
                                 kept::attention_half_output)});
  }
  if (!task.layer.feeds) return steps;
  steps.then(norm_forward("mlp norm", task, rows));
  if (narrow) {
    run_forward(steps, task, mlp_inner_ops(task));
    return steps;
  }
  Linear up = mlp_weights(task).matrices.front();
  up.out /= 2;
  up.parts = {{up.out, LoraModule::kUpProj}};
  if (task.model.mlp.gated) column_forward(steps, w, {up}, task.model.hidden);
  steps.then(
      activation_forward("activation", task, w.tokens(), mlp_weights(task).matrices.back().in));
  return steps;
}

/// Norms and functions at the rates of the software of a training run.
StepList at_rates(StepList steps, const RankWork& work) {
  if (!work.trains()) return steps;
  steps.set_rate(KernelClass::kNormalization, work.software->norm_rate.value);
  steps.set_rate(KernelClass::kElementwise, work.software->elementwise_rate.value);
  return steps;
}

/// A forward pass through a layer, from its input.
StepList layer_steps(const LayerTask& task) {
  if (task.model.parallel_block && task.work.trains())
    return forward_pass(task, parallel_block(task));
  StepList steps = mixer_half_forward(task);
  if (task.layer.kind == LayerKind::kCross)
    steps.append(forward_pass(task, cross_half(task)), kCrossPart);
  steps.append(feed_half_forward(task));
  return steps;
}

}  // namespace

void issued(StepList& steps, const LayerTask& task, GraphPart part) {
  if (task.work.trains()) steps.issued_in(task.work.software->host_time(part));
}

Kernel norm_forward(const std::string& name, const LayerTask& task, std::int64_t rows) {
  const bool residual = !task.work.trains() && task.model.residual_streams == 1;
  Kernel kernel = norm(name, task.work.normed_precision(),
                       {rows, task.model.hidden, task.model.norm_bias, residual});
  kernel.launches = task.work.launches(2 + (task.model.norm_bias ? 1 : 0) + (residual ? 1 : 0));
  return kernel;
}

void norm_backward(StepList& steps, const std::string& name, const LayerTask& task,
                   std::int64_t rows, PastBlock past) {
  const TrainingSoftware& software = *task.work.software;
  const double bytes = task.bytes();
  const std::int64_t hidden = task.model.hidden;
  if (software.norm_backward.value == NormBackward::kTwoPasses && !task.work.lora.trains)
    steps.aside(stream(name + " of weights", KernelClass::kNormalization, rows, hidden,
                       {2 * bytes, 0, vector_cost::kNormBackward / 2}),
                {steps.cursor()});
  steps.then(norm_gradient(name, rows, hidden, bytes));
  // PyTorch's autograd adds up gradients of a tensor that is used twice.
  if (past == PastBlock::kGradient)
    steps.then(elementwise(name + " residual", rows, hidden, {2 * bytes, bytes, 1}));
}

Precision unquantised(Precision precision) {
  return element_bytes(precision) < 2 ? Precision::kBf16 : precision;
}

Precision LayerTask::precision(StoredFormat stored) const {
  if (work.trains()) return work.formats.precision;
  if (stored == StoredFormat::kSixteenBit) return unquantised(work.formats.precision);
  if (stored == StoredFormat::kWideFourBit) return unquantised(work.formats.precision);
  if (stored == StoredFormat::kEightFloat)
    return element_bytes(work.formats.precision) < 1 ? Precision::kFp8 : work.formats.precision;
  const bool scaled = stored == StoredFormat::kMxFourBit && work.formats.mx_products;
  return scaled && element_bytes(work.formats.precision) >= 2 ? Precision::kFp8
                                                              : work.formats.precision;
}

WeightFormat LayerTask::weights(StoredFormat stored) const {
  if (work.trains()) return {.sparse = work.formats.sparse_weights};
  const auto widened = [this](std::int64_t bits) -> WeightFormat {
    return {bits, false, work.kernels.experts == ExpertKernels::kMarlin, model.scale_bits};
  };
  if (stored == StoredFormat::kWideFourBit) return widened(4);
  // As they are, beside operands of 8 bits.
  if (stored == StoredFormat::kMxFourBit && work.formats.mx_products &&
      element_bytes(work.formats.precision) == 1)
    return {.bits = 4, .sparse = false};
  // Only operands of 16 bits and more are what narrow weights are widened to.
  if (element_bytes(work.formats.precision) < 2) return {};
  if (stored == StoredFormat::kFourBit || stored == StoredFormat::kMxFourBit) return widened(4);
  if (stored == StoredFormat::kEightBit) return widened(8);
  if (work.formats.widened_bits > 0 && stored == StoredFormat::kPrecision)
    return widened(work.formats.widened_bits);
  if (work.formats.widened_bits > 0 && stored == StoredFormat::kEightFloat)
    return {.bits = 8, .sparse = false, .marlin = work.kernels.experts == ExpertKernels::kMarlin};
  return {};
}

void next_turn(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const bool exchanges = task.layer.moe && w.split.ep > 1;
  if (w.takes_turns && w.turns_by_stages && w.batch.phase == Phase::kDecode && exchanges)
    steps.next_turn();
}

StepList attention_part_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work, const AttentionPart& part) {
  StepList steps;
  const RankWork of_mixer = mixer_work({model, layer, work});
  if (const Mixer* mixer = mixer_of(model, layer))
    mixer->part_forward(steps, {model, layer, of_mixer}, part);
  return launched_early(std::move(steps), work);
}

StepList mixer_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  const Mixer* mixer = mixer_of(model, layer);
  if (mixer == nullptr) return {};
  const RankWork own = mixer_work({model, layer, work});
  const LayerTask mixes{model, layer, own};
  return launched_early(forward_pass(mixes, mixer->ops(mixes)), work);
}

StepList attention_half_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work) {
  return mixer_half_forward({model, layer, work});
}

StepList feed_half_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  return feed_half_forward({model, layer, work});
}

StepList layer_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  return at_rates(layer_steps({model, layer, work}), work);
}

StepList layer_again(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  const LayerTask again{model, layer, work, Forward::kAgain};
  if (work.recomputes_products()) return at_rates(products_again(again), work);
  if (work.passes.recompute != Recompute::kFull) return {};
  return at_rates(layer_steps(again), work);
}

StepList layer_backward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  StepList steps = layer_again(model, layer, work);
  steps.append(layer_gradients(model, layer, work));
  return steps;
}

StepList layer_gradients(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  const LayerTask task{model, layer, work};
  if (model.parallel_block) return at_rates(backward_pass(task, parallel_block(task)), work);
  StepList steps = backward_pass(task, feed_half(task));
  if (layer.kind == LayerKind::kCross)
    steps.append(backward_pass(task, cross_half(task)), kCrossPart);
  run_backward(steps, task, mixer_half(task));
  return at_rates(std::move(steps), work);
}

}  // namespace orrery
