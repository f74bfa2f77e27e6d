// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/offload.h"

#include <vector>

#include "workloads/layers/layers.h"

namespace orrery {
namespace {

StepList copy_of(const LlmConfig& model, const LayerConfig& layer, RankWork work, Scope scope,
                 TensorEvent::What what) {
  const bool tells = work.passes.tensors;
  work.passes.tensors = true;
  const std::vector<Tensor> kept = layer_forward(model, layer, work).left(TensorRole::kActivation);
  LayerCollective copy{scope == Scope::kHostOut ? "activations to host" : "activations from host",
                       TransferKind::kSendReceive,
                       scope,
                       {}};
  for (const Tensor& tensor : kept) copy.bytes += tensor.bytes;
  StepList steps;
  if (kept.empty()) return steps;
  steps.tell_tensors(tells);
  steps.then(copy);
  for (const Tensor& tensor : kept) steps.tell(what, tensor);
  return steps;
}

}  // namespace

bool is_offloaded(const TrainingConfig& config, LayerRange chunk, std::int64_t layer) {
  return layer - chunk.first < config.activation_offload;
}

StepList offload_copy(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  return copy_of(model, layer, work, Scope::kHostOut, TensorEvent::What::kFrees);
}

StepList reload_copy(const LlmConfig& model, const LayerConfig& layer, const RankWork& work) {
  return copy_of(model, layer, work, Scope::kHostIn, TensorEvent::What::kMakes);
}

}  // namespace orrery
