// SPDX-License-Identifier: Apache-2.0
// What experts keep for their backward passes (kept_tensors.h).
#include "workloads/base/real.h"
#include "workloads/layers/parts/expert_rows.h"
#include "workloads/layers/parts/kept_parts.h"
#include "workloads/ops/kernels.h"

namespace orrery::kept {
namespace {

/// Elements in front of the function of shared experts and behind it.
double shared_elements(const LayerTask& task) {
  return real(task.work.split_tokens()) * real(task.model.moe.shared_intermediate);
}

}  // namespace

Tensor router_input(const LayerTask& task) {
  return of_modules(of_layer("router input", task,
                             real(task.work.split_tokens()) * real(task.model.hidden) *
                                 (task.work.lora.trains ? 0 : task.bytes())),
                    task, {RecomputeModule::kLayernorm});
}

Tensor router_scores(const LayerTask& task) {
  return of_modules(
      of_layer("router scores", task,
               real(task.work.split_tokens()) * real(task.model.moe.experts) * task.bytes()),
      task, {RecomputeModule::kMoe});
}

Tensor expert_norm_inputs(const LayerTask& task) {
  const double results = task.model.moe.norms > 0 ? 2 : 0;
  return of_modules(
      of_layer("expert norm inputs", task,
               results * real(task.work.split_tokens() * task.model.hidden) * task.bytes()),
      task, {RecomputeModule::kMoe});
}

Tensor shared_input(const LayerTask& task) {
  const bool apart = task.work.formats.narrow_inputs || task.model.moe.norms > 0;
  const bool copied = apart && task.model.moe.shared_intermediate > 0;
  return of_modules(of_layer("shared expert input", task,
                             real(task.work.split_tokens()) * real(task.model.hidden) *
                                 (copied ? input_bytes(task.work) : 0)),
                    task, {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_function_input(const LayerTask& task) {
  return of_modules(of_layer("shared function input", task,
                             shared_elements(task) * function_columns(task) * task.bytes()),
                    task, {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor shared_down_input(const LayerTask& task) {
  return of_modules(
      of_layer("shared down input", task, shared_elements(task) * input_bytes(task.work)), task,
      {RecomputeModule::kMoe, RecomputeModule::kSharedExperts});
}

Tensor expert_input(const LayerTask& task) {
  return of_modules(of_layer("expert input", task,
                             routed_rows(task) * real(task.model.expert_columns()) *
                                 task.work.split.etp * input_bytes(task.work)),
                    task, {RecomputeModule::kMoe});
}

Tensor expert_function_input(const LayerTask& task) {
  return of_modules(of_layer("expert function input", task,
                             routed_rows(task) * real(task.model.moe.intermediate) *
                                 function_columns(task) * task.bytes()),
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
  const int copies = !weighted ? 0 : task.work.split.ep == 1 ? task.work.split.etp : 1;
  return of_modules(
      of_layer("expert outputs", task,
               routed_rows(task) * real(task.model.expert_columns()) * copies * task.bytes()),
      task, {RecomputeModule::kMoe});
}

Tensor expert_sums(const LayerTask& task) {
  return of_modules(of_layer("expert sums", task,
                             real(task.work.split_tokens()) * real(task.model.moe.latent) *
                                 input_bytes(task.work)),
                    task, {RecomputeModule::kMoe});
}

}  // namespace orrery::kept
