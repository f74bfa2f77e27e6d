// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/app/experiments/serving_config.h"
#include "sim/app/pricing/step_pricer.h"
#include "sim/serving/instance.h"

namespace orrery {

/// Memory of a rank of a group: of the pipeline stage that has the least room for blocks.
struct ServingMemory {
  Bytes usable;       ///< what the engine may use
  Bytes weights;
  Bytes working;      ///< activations and logits of the largest iteration
  Bytes windows;      ///< caches that do not grow with a sequence: those of sliding windows
  Bytes block;        ///< a block of the cache
  std::int64_t blocks = 0;
};

/// Blocks that a rank has for keys and values.
/// @param llm the model in the precision of the group
ServingMemory serving_memory(const Machine& machine, const LlmConfig& llm,
                             const ServingGroup& group);

/// The step of inference that a group's plan gives; its batch does not count.
InferenceConfig serving_step(const ServingGroup& group);

/// What all replicas of a group have in common, and the replicas.
class ServingFleetGroup {
 public:
  ServingFleetGroup(std::shared_ptr<const Machine> machine, const LlmConfig& llm,
                    const ServingGroup& group, const KernelChoice& choice);

  const ServingMemory& memory() const { return memory_; }
  const StepPricer& pricer() const { return *pricer_; }
  /// Adds the replicas to a fleet.
  void add_to(std::vector<Instance>& instances);

 private:
  const ServingGroup& group_;
  ServingMemory memory_;
  std::unique_ptr<StepPricer> pricer_;
};

}  // namespace orrery
