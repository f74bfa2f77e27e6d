// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/app/pricing/attention_pricer.h"
#include "sim/app/pricing/part_pricer.h"
#include "sim/app/pricing/step_tables.h"
#include "sim/app/pricing/two_batch_time.h"
#include "workloads/steps/inference/inference.h"

namespace orrery {

/// What the layers of experts of a step take that work on two batches in turn: alternating_time()
/// or staged_time() of tables, which have what each batch's kernels take alone and beside each
/// exchange. All layers of experts are taken to be alike: each is their mean.
class TwoBatchPricer {
 public:
  /// @param parts, model and plan outlive it
  TwoBatchPricer(const PartPricer& parts, const LlmConfig& model, const InferenceConfig& plan);

  /// @param padding tokens that layers compute beside those of the batch
  /// @param mean_tokens those of the mean rank, which experts that ranks share have; 0: all alike
  StepPrice price(const MixedBatch& batch, std::int64_t padding, std::int64_t mean_tokens);
  /// Runs of layers of experts on all stages, each followed by a merge of its two batches.
  std::size_t runs() const { return runs_.size(); }
  bool known() const { return known_; }

 private:
  enum class Segment : std::uint8_t {
    kProject,  ///< up to attention
    kRoute,
    kSend,  ///< decodes that take turns by stages have it apart
    kDispatch,
    kShared,
    kExperts,
    kCombine,
    kAddUp
  };
  /// A batch of the two, as tables are asked for it.
  struct Batch {
    BatchShape shape;
    std::vector<Chunk> chunks;
    std::int64_t tokens = 0;
    std::int64_t of_experts = 0;  ///< tokens of the mean rank
    bool decodes = true;
  };
  using Loads = std::array<DeviceLoad, kTurnExchanges>;
  /// Prices of kernels alone and beside each exchange.
  struct Prices {
    StepPrice alone;
    std::array<StepPrice, kTurnExchanges> beside;
    TurnWork at(std::size_t point) const;
  };
  struct Layer {
    Prices project, attend, route, send, shared, experts, add_up;
    StepPrice dispatch, combine;
    TurnLayer at(std::size_t point) const;
  };

  static Batch batch_of(const MixedBatch& half, std::int64_t padding);
  Layer layer(const Batch& batch, const Loads& loads);
  StepPrice segment(const Batch& batch, Segment segment, const DeviceLoad& taken = {});
  StepPrice attention(const Batch& batch, const DeviceLoad& taken);
  template <class Price>
  Prices prices(const Loads& loads, Price price);
  StepList steps(Segment segment, const LayerConfig& layer, bool decodes,
                 std::int64_t tokens) const;
  StepPrice evaluate(Segment segment, bool decodes, std::int64_t tokens,
                     const DeviceLoad& taken) const;
  DeviceLoad load(Segment segment, const Batch& batch);

  const PartPricer& parts_of(bool decodes) const { return decodes ? parts_ : prompts_; }

  const PartPricer& parts_;
  PartPricer prompts_;  ///< prices of steps with prompts, whose products may keep off SMs
  const LlmConfig& model_;
  const InferenceConfig& plan_;
  std::vector<LayerConfig> layers_;  ///< those of experts
  std::vector<std::int64_t> runs_;   ///< lengths of those that follow each other on a stage
  std::map<std::tuple<Segment, bool, DeviceLoad>, RowTable> tables_;
  std::map<std::pair<DeviceLoad, bool>, AttentionPricer> attention_;
  std::map<std::tuple<Segment, bool, std::int64_t>, DeviceLoad> loads_;
  bool known_ = true;
};

}  // namespace orrery
