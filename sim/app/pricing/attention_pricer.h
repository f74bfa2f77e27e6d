// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "sim/app/pricing/part_pricer.h"
#include "sim/app/pricing/step_tables.h"
#include "sim/graph/costs.h"
#include "sim/serving/iteration.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// The plan with that batch, decodes as summarised_decodes() has them.
InferenceConfig with_batch(InferenceConfig plan, const BatchShape& shape);

/// A layer of a model, and how many are like it.
struct AlikeLayers {
  LayerConfig layer;
  double count = 0;
};
std::vector<AlikeLayers> alike_layers(const std::vector<LayerConfig>& layers,
                                      bool (*alike)(const LayerConfig& a, const LayerConfig& b));
inline bool same_layer(const LayerConfig& a, const LayerConfig& b) { return a == b; }
/// What attention of all layers takes by kernels of its own: by (tokens, earlier tokens, sequences)
/// of all prompts together, PromptSum::alike(), and by (sequences, longest and mean context) of
/// decodes, in tables that are filled on demand.
class AttentionPricer {
 public:
  /// @param parts, model and plan outlive it
  /// @param taken what transfers beside it take of the device
  AttentionPricer(const PartPricer& parts, const LlmConfig& model, const InferenceConfig& plan,
                  const DeviceLoad& taken = {});

  /// Appends the price of attention of a batch. @return whether all of it was there
  bool add(const BatchShape& shape, double weight, PriceTerms& terms);

 private:
  StepPrice price(const AttentionPart& part) const;
  /// @param wanted gives those steps of a list that are priced
  StepPrice price(const AttentionPart& part,
                  const std::function<StepList(const StepList&)>& wanted) const;
  StepPrice price_decodes(std::int64_t sequences, std::int64_t queries,
                          const ColumnTable::Point& at) const;
  ColumnTable& decodes(std::int64_t queries);
  /// @param at earlier tokens of each, and sequences
  StepPrice price_prompts(std::int64_t rows, const ColumnTable::Point& at) const;
  StepPrice price_expansion(std::int64_t context) const;
  bool add_decodes(const BatchShape& shape, double weight, PriceTerms& terms);
  bool add_prompts(const BatchShape& shape, double weight, PriceTerms& terms);
  /// Prompts expand keys and values; sparse attention does not.
  bool is_latent() const {
    return model_.attention.kind == AttentionKind::kLatent && model_.attention.indexer.heads == 0;
  }
  /// Ranks that share the cache of a sequence.
  double shards() const { return plan_.parallel.cache_shards(); }

  const PartPricer& parts_;
  const LlmConfig& model_;
  const InferenceConfig& plan_;
  DeviceLoad taken_;
  std::vector<AlikeLayers> layers_;
  /// Prices by queries of each sequence: sequences; keys of the longest on a rank, mean over
  /// longest.
  std::map<std::int64_t, ColumnTable> decodes_;
  /// Prices by tokens of each prompt, of context parallel ranks those of a piece; earlier tokens of
  /// each, prompts.
  ColumnTable prompts_;
  RowTable expansions_;  ///< latent attention: prices by tokens, earlier ones included, of prompts
};

}  // namespace orrery
