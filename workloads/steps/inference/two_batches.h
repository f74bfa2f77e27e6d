// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "sim/graph/kernel.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// Whether a step of so many tokens of a rank works on two batches. As vLLM's by default: decodes
/// alone from 32 tokens on (dbo_decode_token_threshold), others from 512 on
/// (dbo_prefill_token_threshold); splitting fewer costs more weights read than exchanges hidden.
/// SGLang has no such threshold.
bool runs_two_batches(const InferenceConfig& config, std::int64_t tokens, bool decodes_alone);

/// What a step of any phase does, as a mixed one.
MixedBatch batch_of(const InferenceConfig& config);

/// A batch as two: every other decode, and prompts cut in the middle of their tokens, one of them
/// in two pieces if need be.
std::array<MixedBatch, 2> halves(const MixedBatch& batch);

InferenceConfig half_step(InferenceConfig config, const MixedBatch& half);

/// Puts hidden states and residuals of both batches one behind the other.
Kernel merge_batches(const LlmConfig& model, const RankWork& work);

/// @throws config::KeyError for a model or a plan whose layers have nothing to overlap
void require_two_batches(const LlmConfig& model, const InferenceConfig& config);

}  // namespace orrery
