// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/app/pricing/attention_pricer.h"
#include "sim/app/pricing/part_pricer.h"
#include "sim/app/pricing/step_price.h"
#include "sim/app/pricing/step_tables.h"
#include "sim/app/pricing/two_batch_pricer.h"
#include "sim/graph/program.h"
#include "sim/serving/iteration.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// The time of any step of inference without its graph: what all tokens share (projections, MLPs,
/// experts, collectives) by their number, attention by chunk and by (sequences, longest and mean
/// context) of decodes, adapters by tokens and how many there are, and the head by the sequences
/// that sample. Each is a table that is filled on demand with the prices that a replay of the same
/// step asks for. Serves one thread.
///
/// What is taken to hold, and tested against replays of program(): steps touch so much memory that
/// nothing stays in the L2 from one to the next (Kernel::reuse is that of the smallest step); the
/// pipeline stages' collectives cost what those of the first do.
class StepPricer final : public IterationPricer {
 public:
  /// @param plan its batch does not count
  /// @throws config::ConfigError as require_supported() of a plan
  StepPricer(const StepMachine& machine, LlmConfig model, const InferenceConfig& plan);

  IterationPrice price(const BatchShape& shape) override;

  /// The same step as a graph, with decodes as summarised_decodes() has them.
  /// @throws config::ConfigError as build_inference()
  Program program(const BatchShape& shape) const;

  const StepMachine& machine() const { return parts_.machine(); }

  /// Steps that were asked, and those of them that priced something first.
  std::int64_t asked() const { return asked_; }
  std::int64_t missed() const { return missed_; }

 private:
  RankWork work(Phase phase, std::int64_t tokens) const;
  /// Where two batches take turns, without the layers of experts that they do so in.
  StepPrice price_tokens(Phase phase, std::int64_t tokens, bool turns = false) const;
  StepPrice price_shares(Phase phase, std::int64_t rows) const;
  StepPrice price_experts(std::int64_t tokens) const;
  bool shared_out(const LayerConfig& layer) const;
  /// New tokens of a step on a rank, without padding.
  std::int64_t tokens_on_rank(const BatchShape& shape) const;
  /// BatchShape::mean_tokens, of which a rank has the same share as of its own.
  std::int64_t mean_on_rank(const BatchShape& shape) const;
  StepPrice price_head(std::int64_t rows) const;
  /// Towers, for prompts that begin.
  StepPrice price_images(std::int64_t prompts) const;
  StepPrice price_adapters(std::int64_t adapters, std::int64_t tokens) const;
  bool add_tokens(std::int64_t tokens, bool decodes);
  bool move_experts(std::int64_t tokens, std::int64_t mean);
  bool add_adapters(std::int64_t adapters, std::int64_t tokens);
  /// All but the head, of two batches that take turns.
  bool add_turns(const BatchShape& shape);

  LlmConfig model_;
  InferenceConfig plan_;
  PartPricer parts_;
  StepClock clock_;
  std::vector<AlikeLayers> layers_;
  AttentionPricer attention_;
  RowTable decode_tokens_, mixed_tokens_;  ///< prices of all layers and the embedding by tokens
  RowTable decode_shares_, mixed_shares_;  ///< prices of experts, where tp ranks share the tokens
  RowTable experts_;  ///< prices of products of experts alone, by tokens of a data parallel rank
  RowTable head_;
  RowTable images_;                            ///< prices by prompts that begin
  std::map<std::int64_t, RowTable> adapters_;  ///< prices by tokens, by number of adapters
  TwoBatchPricer turns_;
  RowTable decode_rest_, mixed_rest_;  ///< prices by tokens of what no two batches take turns in
  StepPrice turned_;                   ///< price of the turns of the step that is asked for
  PriceTerms terms_;
  std::int64_t asked_ = 0, missed_ = 0;
};

/// Iterations of a model whose decodes verify draft tokens, and of the one that makes them: after
/// each iteration its first pass takes all new tokens, and gives the first draft token; each
/// further one takes a token of every sequence that will decode next. Passes follow each other.
class SpeculativePricer final : public IterationPricer {
 public:
  /// @param target outlives it
  /// @param draft outlives it; null: draft tokens take the devices no time
  /// @param draft_tokens of each sequence
  SpeculativePricer(IterationPricer& target, IterationPricer* draft, std::int64_t draft_tokens)
      : target_(target), draft_(draft), draft_tokens_(draft_tokens) {}

  IterationPrice price(const BatchShape& shape) override;

 private:
  IterationPricer& target_;
  IterationPricer* draft_;
  std::int64_t draft_tokens_;
};

}  // namespace orrery
