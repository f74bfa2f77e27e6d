// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/app/pricing/part_pricer.h"
#include "sim/app/pricing/step_clock.h"
#include "sim/app/pricing/step_tables.h"
#include "sim/graph/program.h"
#include "sim/serving/iteration.h"
#include "workloads/inference/inference.h"

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

  /// Steps that were asked, and those of them that priced something first.
  std::int64_t asked() const { return asked_; }
  std::int64_t missed() const { return missed_; }
  /// Prices in all tables.
  std::size_t entries() const;

 private:
  /// Layers of a model that are alike, or whose attention is.
  struct LayerKind {
    LayerConfig layer;
    double count = 0;
  };

  std::vector<LayerKind> kinds(bool attention_alone) const;
  LayerWork work(Phase phase, std::int64_t tokens) const;
  StepPrice price_tokens(Phase phase, std::int64_t tokens) const;
  StepPrice price_shares(Phase phase, std::int64_t rows) const;
  StepPrice price_experts(std::int64_t tokens) const;
  bool shared_out(const LayerConfig& layer) const;
  StepPrice price_head(std::int64_t rows) const;
  StepPrice price_attention(const AttentionPart& part) const;
  /// @param wanted gives those steps of a list that are priced
  StepPrice price_attention(const AttentionPart& part,
                            const std::function<StepList(const StepList&)>& wanted) const;
  StepPrice price_decodes(std::int64_t sequences, std::int64_t queries,
                          const ColumnTable::Point& at) const;
  ColumnTable& decodes(std::int64_t queries);
  StepPrice price_chunk(std::int64_t tokens, std::int64_t earlier) const;
  StepPrice price_expansion(std::int64_t context) const;
  StepPrice price_adapters(std::int64_t adapters, std::int64_t tokens) const;
  bool add_tokens(std::int64_t tokens, bool decodes);
  bool move_experts(std::int64_t tokens, std::int64_t mean);
  bool add_decodes(const BatchShape& shape);
  bool add_chunk(const Chunk& chunk);
  bool add_adapters(std::int64_t adapters, std::int64_t tokens);
  bool is_latent() const { return model_.attention.kind == AttentionKind::kLatent; }

  LlmConfig model_;
  InferenceConfig plan_;
  PartPricer parts_;
  StepClock clock_;
  std::vector<LayerKind> layers_, attentions_;
  RowTable decode_tokens_, mixed_tokens_;  ///< prices of all layers and the embedding by tokens
  RowTable decode_shares_, mixed_shares_;  ///< prices of experts, where tp ranks share the tokens
  RowTable experts_;  ///< prices of products of experts alone, by tokens of a data parallel rank
  RowTable head_;
  /// Prices by queries of each sequence: sequences; keys of the longest, mean over longest.
  std::map<std::int64_t, ColumnTable> decodes_;
  ColumnTable chunks_;   ///< tokens; earlier tokens
  RowTable expansions_;  ///< latent attention: keys and values of all tokens of a chunk's sequence
  std::map<std::int64_t, RowTable> adapters_;  ///< prices by tokens, by number of adapters
  PriceTerms terms_;
  std::int64_t asked_ = 0, missed_ = 0;
};

}  // namespace orrery
