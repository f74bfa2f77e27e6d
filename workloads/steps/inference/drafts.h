// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "workloads/ops/step_list.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// Passes of the draft model, in the order they run behind a step: the first takes all new tokens
/// and gives the first draft token, each further one a token of every decode. A module of
/// multi-token prediction joins hidden states with embeddings before its layer; a model of its own
/// has all its layers. Experts' exchanges do not overlap, and adapters change the model alone.
/// @param config has `drafts`
std::vector<StepList> draft_passes(const LlmConfig& target, const InferenceConfig& config);

/// The step of the draft model, whole on the last stage.
InferenceConfig draft_step(const InferenceConfig& config, const MixedBatch& batch);

}  // namespace orrery
