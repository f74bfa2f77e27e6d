// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/graph/program.h"
#include "workloads/layers/experts/expert_routing_config.h"
#include "workloads/layers/parts/rank_work.h"
#include "workloads/layers/vision/tower_steps.h"
#include "workloads/steps/inference/batch.h"

namespace orrery {

/// The draft model, and how many tokens it drafts for each sequence.
struct Drafts {
  std::shared_ptr<const LlmConfig> model;
  bool of_target = false;  ///< a module of multi-token prediction of the model itself
  std::int64_t draft_tokens = 1;
};

/// One step of a fixed batch: a prefill, a decode, or both mixed.
struct InferenceConfig {
  ParallelConfig parallel;
  Phase phase = Phase::kDecode;
  std::int64_t micro_batch = 1;  ///< sequences per data parallel rank
  std::int64_t sequence = 1;     ///< new tokens of each sequence in prefill
  std::int64_t kv_length = 0;    ///< tokens in the KV cache before the step
  MixedBatch batch;              ///< batch of kMixed, which asks for none of the last three
  /// Tokens that layers compute, those that fill up a tile or a captured graph among them, of which
  /// attention and the head see nothing; 0: those of the batch.
  std::int64_t layer_tokens = 0;
  std::int64_t images = 0;        ///< images in front of each prompt, whose tokens it counts
  ImageSize image;                ///< pixels of each of them
  bool mx_products = false;       ///< see WorkFormats::mx_products
  std::int64_t widened_bits = 0;  ///< see WorkFormats::widened_bits
  KernelRules kernels;
  Bytes normed_all_reduce;  ///< see RankWork::normed_all_reduce
  /// None: every rank gets the mean number of tokens. Its file must have been read.
  std::optional<ExpertRoutingConfig> expert_routing;
  /// Layers of experts work on two halves of the batch, one half's exchanges beside the kernels of
  /// the other, where runs_two_batches().
  bool two_batch_overlap = false;
  bool mean_lengths = false;                    ///< see TokenBatch
  Precision precision = Precision::kBf16;       ///< precision of weights and matrix operands
  Precision kv_precision = Precision::kBf16;    ///< precision of the KV cache
  Precision index_precision = Precision::kFp8;  ///< see WorkFormats::index_precision
  std::optional<LoraConfig> lora;               ///< slots for adapters beside the model
  std::int64_t adapters = 0;     ///< different adapters among the tokens; 0: none of them has one
  std::optional<Drafts> drafts;  ///< passes behind the step, on its last stage
};

/// New tokens of the step on one data parallel rank.
std::int64_t step_tokens(const InferenceConfig& config);

/// What a tensor parallel group does with the images of the prompts that begin in the step; where
/// there are any, the model has a vision tower.
TowerWork tower_work(const LlmConfig& model, const InferenceConfig& config);

/// What the step does on one rank in a layer. A mixed batch of decodes alone, or of prompts of one
/// kind, is a decode or a prefill. All ranks get the mean number of tokens.
RankWork rank_work(const InferenceConfig& config);
/// What the step does on the rank whose experts get the most tokens.
RankWork rank_work(const LlmConfig& model, const InferenceConfig& config);

/// @throws config::ConfigError naming what does not divide, is out of range or is not modelled.
void require_supported(const LlmConfig& model, const InferenceConfig& config);

/// The step as a program: one role per pipeline stage, tp and dp folded. Attention is split over tp
/// and copied over dp; experts over ep of the tp * dp ranks. Stages run one after another on one
/// micro-batch.
/// @throws config::ConfigError as require_supported does.
Program build_inference(const LlmConfig& model, const InferenceConfig& config);

}  // namespace orrery
