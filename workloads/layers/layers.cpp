// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/layers.h"

#include "workloads/base/real.h"
#include "workloads/layers/attention/context_parallel.h"
#include "workloads/layers/attention/rotary_kernels.h"
#include "workloads/layers/parallel_block.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/layers/parts/mixer.h"
#include "workloads/layers/parts/residuals.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// Tokens whose second half of the layer (MLP or experts) is this rank's.
std::int64_t second_half_rows(const LayerTask& task) {
  return task.scatters_attention() ? task.work.split_tokens() : task.work.tokens();
}

/// The norm after a block (gemma2), before its residual.
void output_norm_forward(StepList& steps, const std::string& name, const LayerTask& task,
                         std::int64_t rows, KeptTensor input) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = task.bytes();
  steps.then(stream(name, KernelClass::kNormalization, rows, task.model.hidden,
                    {bytes, bytes, vector_cost::kRmsNorm}));
  makes(steps, task, {input});
}

void output_norm_backward(StepList& steps, const std::string& name, const LayerTask& task,
                          KeptTensor input) {
  if (task.model.norms_per_layer < 4) return;
  const double bytes = task.bytes();
  steps.then(stream(name, KernelClass::kNormalization, task.work.row_tokens(), task.model.hidden,
                    {2 * bytes, bytes, vector_cost::kNormBackward}));
  frees(steps, task, {input});
}

void feed_forward(StepList& steps, const LayerTask& task) {
  task.layer.moe ? moe_forward(steps, task) : mlp_forward(steps, task);
}

void feed_backward(StepList& steps, const LayerTask& task) {
  task.layer.moe ? moe_backward(steps, task) : mlp_backward(steps, task);
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

StepList mixer_half(const LayerTask& task) {
  StepList steps;
  const Mixer* mixer = mixer_of(task.model, task.layer);
  if (mixer == nullptr) return steps;
  RankWork of_mixer = task.work;
  of_mixer.formats.precision = task.precision(task.layer.attention);
  const LayerTask mixes{task.model, task.layer, of_mixer, task.forward};
  const std::int64_t second = second_half_rows(task);
  issued(steps, task, GraphPart::kAttention);
  steps.tell_tensors(task.work.passes.tensors);
  residual_mixture(steps, mixes);
  hyper_connection_in(steps, mixes);
  // Behind a layer like this one, or the embedding.
  if (!mixer->norms_input()) {
    steps.then(norm_of_sum(mixer->name() + " norm", mixes, !task.layer.moe || all_reduces(task)));
    makes(steps, task,
          {kept::layer_input, kept::attention_norm_values, kept::attention_residual_input,
           kept::block_outputs});
  }
  mixer->forward(steps, mixes);
  output_norm_forward(steps, mixer->name() + " output norm", task, second,
                      kept::attention_output_norm_input);
  residual_forward(steps, mixer->name() + " residual", task, second, kept::attention_residual_mask);
  hyper_connection_out(steps, task, second);
  makes(steps, task, {kept::attention_half_output, kept::adapter_columns, kept::widened_weights});
  return steps;
}

/// Whether the gradient of what follows a half comes past it.
PastBlock past_half(const LayerTask& task) {
  return mixes_residuals(task) ? PastBlock::kNothing : PastBlock::kGradient;
}

void mixer_half_backward(StepList& steps, const LayerTask& task) {
  const Mixer* mixer = mixer_of(task.model, task.layer);
  if (mixer == nullptr) return;
  issued(steps, task, GraphPart::kAttention);
  hyper_connection_out_backward(steps, task);
  frees(steps, task, {kept::attention_half_output});
  residual_backward(steps, mixer->name() + " residual backward", task,
                    kept::attention_residual_mask);
  output_norm_backward(steps, mixer->name() + " output norm backward", task,
                       kept::attention_output_norm_input);
  mixer->backward(steps, task);
  if (!mixer->norms_input())
    norm_backward(steps, mixer->name() + " norm backward", task, task.work.row_tokens(),
                  past_half(task));
  frees(steps, task, {kept::layer_input, kept::adapter_columns, kept::widened_weights});
  if (!mixer->norms_input()) frees(steps, task, {kept::attention_norm_values});
  hyper_connection_in_backward(steps, task);
  residual_mixture_backward(steps, task);
  frees(steps, task, {kept::attention_residual_input, kept::block_outputs});
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

StepList feed_half(const LayerTask& task) {
  const std::int64_t rows = task.work.row_tokens();
  StepList steps;
  if (!task.layer.feeds) return steps;
  issued(steps, task, GraphPart::kRouting);
  steps.tell_tensors(task.work.passes.tensors);
  residual_mixture(steps, task);
  hyper_connection_in(steps, task);
  // Parallel blocks (one norm) share the first norm, which then is not computed again.
  if (task.model.norms_per_layer > 1) {
    steps.then(task.scatters_attention() ? norm_forward("mlp norm", task, second_half_rows(task))
                                         : norm_of_sum("mlp norm", task, true));
    makes(steps, task, {feed_input(task), kept::mlp_norm_values, kept::mlp_residual_input});
  }
  issued(steps, task, GraphPart::kOther);
  if (stops_early(task)) {
    mlp_inner_forward(steps, task);
    return steps;
  }
  feed_forward(steps, task);
  output_norm_forward(steps, "mlp output norm", task, rows, kept::mlp_output_norm_input);
  residual_forward(steps, "mlp residual", task, rows, kept::mlp_residual_mask);
  hyper_connection_out(steps, task, rows);
  makes(steps, task, {kept::mlp_half_output});
  return steps;
}

void feed_half_backward(StepList& steps, const LayerTask& task) {
  if (!task.layer.feeds) return;
  issued(steps, task, GraphPart::kOther);
  hyper_connection_out_backward(steps, task);
  frees(steps, task, {kept::mlp_half_output});
  residual_backward(steps, "mlp residual backward", task, kept::mlp_residual_mask);
  output_norm_backward(steps, "mlp output norm backward", task, kept::mlp_output_norm_input);
  feed_backward(steps, task);
  if (task.model.norms_per_layer == 1) return;
  issued(steps, task, GraphPart::kRouting);
  norm_backward(steps, "mlp norm backward", task, task.work.row_tokens(), past_half(task));
  frees(steps, task, {feed_input(task), kept::mlp_norm_values});
  hyper_connection_in_backward(steps, task);
  residual_mixture_backward(steps, task);
  frees(steps, task, {kept::mlp_residual_input});
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
  if (software.norm_backward.value == NormBackward::kTwoPasses && !task.work.lora.trains) {
    steps.aside(stream(name + " of weights", KernelClass::kNormalization, rows, hidden,
                       {2 * bytes, 0, vector_cost::kNormBackward / 2}),
                {steps.cursor()});
  }
  steps.then(stream(name, KernelClass::kNormalization, rows, hidden,
                    {2 * bytes, bytes, vector_cost::kNormBackward}));
  // PyTorch's autograd adds up gradients of a tensor that is used twice.
  if (past == PastBlock::kGradient)
    steps.then(
        stream(name + " residual", KernelClass::kElementwise, rows, hidden, {2 * bytes, bytes, 1}));
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

namespace {

/// Kernels that start before the one before has ended, where the engine has them do so.
StepList launched_early(StepList steps, const RankWork& work) {
  if (is_on(work.kernels.pdl)) steps.launch_early();
  return steps;
}

}  // namespace

void next_turn(StepList& steps, const LayerTask& task) {
  const RankWork& w = task.work;
  const bool exchanges = task.layer.moe && w.split.ep > 1;
  if (w.takes_turns && w.turns_by_stages && w.batch.phase == Phase::kDecode && exchanges)
    steps.next_turn();
}

StepList attention_part_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work, const AttentionPart& part) {
  StepList steps;
  const Mixer* mixer = mixer_of(model, layer);
  if (mixer == nullptr) return steps;
  RankWork of_mixer = work;
  of_mixer.formats.precision = LayerTask{model, layer, work}.precision(layer.attention);
  mixer->part_forward(steps, {model, layer, of_mixer}, part);
  return launched_early(std::move(steps), work);
}

StepList attention_half_forward(const LlmConfig& model, const LayerConfig& layer,
                                const RankWork& work) {
  return launched_early(mixer_half({model, layer, work}), work);
}

StepList feed_half_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  return launched_early(feed_half({model, layer, work}), work);
}

namespace {

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
  steps.then(norm_forward("attention norm", task, rows));
  column_forward(steps, w, {projected_again(task, narrow)}, task.model.hidden);
  if (const std::int64_t width = rotated_width(task); width > 0) steps.then(rotated(task, width));
  row_forward(steps, w, mixer_of(task.model, task.layer)->weights(task).matrices.back(),
              RowOutput::kReduced);
  residual_forward(steps, "attention residual", task, rows, kept::attention_residual_mask);
  steps.then(norm_forward("mlp norm", task, rows));
  if (narrow) {
    mlp_inner_forward(steps, task);
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

}  // namespace

StepList layer_forward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  if (model.parallel_block && work.trains())
    return at_rates(parallel_block_forward({model, layer, work}), work);
  StepList steps = attention_half_forward(model, layer, work);
  if (layer.kind == LayerKind::kCross)
    steps.append(cross_half_forward({model, layer, work}), kCrossPart);
  steps.append(feed_half_forward(model, layer, work));
  return at_rates(std::move(steps), work);
}

StepList layer_again(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  const LayerTask again{model, layer, work, Forward::kAgain};
  if (work.recomputes_products()) return at_rates(products_again(again), work);
  StepList steps;
  if (work.passes.recompute != Recompute::kFull) return steps;
  if (model.parallel_block) return at_rates(parallel_block_forward(again), work);
  steps.append(mixer_half(again));
  if (layer.kind == LayerKind::kCross) steps.append(cross_half_forward(again), kCrossPart);
  steps.append(feed_half(again));
  return at_rates(std::move(steps), work);
}

StepList layer_backward(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  StepList steps = layer_again(model, layer, work);
  steps.append(layer_gradients(model, layer, work));
  return steps;
}

StepList layer_gradients(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  const LayerTask task{model, layer, work};
  StepList steps;
  steps.tell_tensors(work.passes.tensors);
  if (model.parallel_block) {
    parallel_block_backward(steps, task);
    return at_rates(std::move(steps), work);
  }
  feed_half_backward(steps, task);
  if (layer.kind == LayerKind::kCross) steps.append(cross_half_backward(task), kCrossPart);
  mixer_half_backward(steps, task);
  return at_rates(std::move(steps), work);
}

}  // namespace orrery
