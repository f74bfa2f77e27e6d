// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sim/app/experiments/serving/config.h"
#include "sim/app/pricing/step_pricer.h"
#include "sim/config/diagnostics.h"
#include "sim/serving/autoscaler.h"
#include "sim/serving/instance.h"

namespace orrery {

/// Memory of a rank of a group: of the pipeline stage that has the least room for blocks.
struct ServingMemory {
  Bytes device;   ///< memory of the device
  Bytes usable;   ///< what the engine may use
  Bytes weights;  ///< those of a draft model included
  /// The larger of activations of the largest iteration, and of logits from which it chooses the
  /// most tokens, with its hidden states.
  Bytes working;
  bool sampling = false;  ///< `working` is what the choice of tokens takes
  Bytes libraries;        ///< see EngineOverheads
  Bytes communicators;    ///< see EngineOverheads
  Bytes graphs;           ///< captured graphs
  Bytes before;           ///< context and communicators before anything is loaded
  /// States of recurrent layers that the engine sets aside, and other caches that do not grow with
  /// a sequence.
  Bytes set_aside;
  Bytes block;  ///< a block of the cache
  std::int64_t blocks = 0;
  /// Tokens that a block holds on all ranks that share the cache of a sequence.
  std::int64_t block_tokens = 0;
  Bytes window;                    ///< full sliding windows of a sequence, in blocks of the cache
  std::int64_t window_tokens = 0;  ///< tokens of the longest window; 0: there are none
  /// Tokens of an iteration that a window has room for beside its own.
  std::int64_t window_chunk = 0;
  /// Upper bound of the tokens kept per sequence, set by windows of all layers. 0 means no bound.
  std::int64_t most_kept = 0;
  Bytes states;                   ///< states of a sequence that lie in blocks of the cache
  std::int64_t state_blocks = 0;  ///< blocks of the states of a sequence, running or kept
  std::int64_t state_tokens = 0;  ///< tokens from one state that is kept with a prefix to the next

  /// Requests of so many tokens that the cache has room for at once; a part of one counts.
  double requests(std::int64_t tokens) const;
  /// Only states are kept, and a block is one.
  bool states_alone() const { return block_tokens == kNoTokens; }
  static constexpr std::int64_t kNoTokens = std::int64_t{1} << 40;

  bool graphs_in_share = false;
  /// What of `usable` is neither weights nor cache.
  Bytes overheads() const {
    return working + libraries + communicators + set_aside + (graphs_in_share ? graphs : Bytes(0));
  }
  /// What the engine takes of what it may use.
  Bytes taken() const { return weights + overheads() + block * static_cast<double>(blocks); }
};

/// An error of a group as one of the experiment: `system.nodes` as `serving.fleet.0.system.nodes`.
config::KeyError within(const config::KeyError& error, std::size_t group);
/// The step of inference that a group's plan gives; its batch does not count.
InferenceConfig serving_step(const ServingGroup& group);
/// @throws config::KeyError for images that the model or the workload cannot have
void require_images(const LlmConfig& llm, const ServingConfig& serving);
/// Requests with the tokens of images besides those of text.
std::unique_ptr<RequestSource> seeing_requests(std::unique_ptr<RequestSource> source,
                                               const LlmConfig& llm, const ServingConfig& serving);

/// Groups with the prices of their iterations, which are filled as they are asked for: ready to
/// serve any workload, by any engines.
class ServingFleet {
 public:
  /// @param llm the model, which each group runs in its precision
  /// @throws config::KeyError for what a group cannot be run by, below "serving.fleet.<i>"
  ServingFleet(std::vector<std::shared_ptr<const Machine>> machines, LlmConfig llm,
               const std::vector<ServingGroup>& groups, const KernelChoice& choice);

  /// Memory of each group with its engine.
  /// @param groups those of the fleet, with engines, replicas and shares of memory as wanted
  std::vector<ServingMemory> memory(const std::vector<ServingGroup>& groups) const;
  /// The replicas of all groups. They ask for prices of the fleet, and refer to the engines.
  /// @param pricer of all iterations; null: the prices of the fleet
  /// @param host work of the host; none: that of each engine
  /// @param slowness how much longer than priced iterations of each group take; empty: they do not
  std::vector<Instance> instances(const std::vector<ServingGroup>& groups,
                                  IterationPricer* pricer = nullptr,
                                  const std::optional<HostCosts>& host = std::nullopt,
                                  const std::vector<Slowness>& slowness = {}) const;
  /// Prices of a group's steps, without those of a draft model.
  const StepPricer& pricer(std::size_t group) const { return *pricers_[group]; }
  const Machine& machine(std::size_t group) const { return *machines_[group]; }
  const LlmConfig& model() const { return llm_; }

 private:
  std::vector<std::shared_ptr<const Machine>> machines_;
  LlmConfig llm_;
  std::vector<std::unique_ptr<StepPricer>> pricers_;
  std::vector<std::unique_ptr<StepPricer>> drafts_;              ///< null: no draft model
  std::vector<std::unique_ptr<SpeculativePricer>> speculative_;  ///< null: no draft tokens
};

std::vector<ScaleRules> scale_rules(const std::vector<ServingGroup>& groups);

/// @throws config::KeyError for what serving cannot run, below "serving.fleet.<i>"
void require_groups(const LlmConfig& llm, const std::vector<ServingGroup>& groups);

}  // namespace orrery
