// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/drafts.h"

#include "workloads/layers/layers.h"
#include "workloads/steps/inference/two_batches.h"

namespace orrery {
namespace {

StepList pass(const LlmConfig& target, const InferenceConfig& config, const MixedBatch& batch) {
  const Drafts& drafts = *config.drafts;
  const RankWork work = rank_work(*drafts.model, draft_step(config, batch));
  StepList steps;
  if (drafts.of_target) {
    steps.append(module_forward(target, work));
  } else {
    steps.append(embedding_forward(*drafts.model, work));
    for (const LayerConfig& layer : drafts.model->layers)
      steps.append(layer_forward(*drafts.model, layer, work));
  }
  steps.append(head_forward(*drafts.model, work));
  return steps;
}

}  // namespace

InferenceConfig draft_step(const InferenceConfig& config, const MixedBatch& batch) {
  InferenceConfig step = half_step(config, batch);
  step.parallel.pp = 1;
  step.two_batch_overlap = false;
  step.lora.reset();
  step.adapters = 0;
  step.images = 0;  // the draft model gets their tokens alone
  if (!config.drafts->of_target) step.expert_routing.reset();
  step.drafts.reset();
  return step;
}

std::vector<StepList> draft_passes(const LlmConfig& target, const InferenceConfig& config) {
  const MixedBatch batch = batch_of(config);
  std::vector<StepList> passes = {pass(target, config, batch)};
  MixedBatch next{{}, batch.decodes};
  if (next.empty()) return passes;
  for (std::int64_t i = 1; i < config.drafts->draft_tokens; ++i)
    passes.push_back(pass(target, config, next));
  return passes;
}

}  // namespace orrery
