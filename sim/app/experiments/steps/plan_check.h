// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "sim/app/experiments/steps/model_experiment.h"

namespace orrery {

/// Finds fault with keys of `parallel` that only training has.
/// @param path of what has it: "", "serving.fleet.0."
void refuse_optimizer_shards(const config::Node& node, const std::string& path,
                             config::Diagnostics& diagnostics);

/// Whether the plan of an experiment can run, short of simulating it: heads, layers, experts and
/// batches that divide, formats that the accelerator has.
/// @return warnings as text: groups that lie on more systems than they have to, experts fewer than
/// the ranks that share them
/// @throws config::ConfigError with the place of what cannot be
std::string check_plan(const LoadedExperiment& loaded);

/// Whether the machine of an experiment can be built.
/// @throws config::ConfigError with the place of what cannot be
void check_network(const LoadedExperiment& loaded);

/// Complains about stragglers that are no ranks.
/// @param owner of the ranks, for the message: "the plan"
void check_stragglers(const NoiseConfig& noise, int ranks, const char* owner,
                      const config::Node& node, config::Diagnostics& diagnostics);

/// Complains about stragglers that the plan has not; warns where ranks were to be folded that noise
/// makes differ.
void check_noise(const StepExperiment& experiment, const config::Node& node,
                 config::Diagnostics& diagnostics);

/// A plan on systems of so many ranks, and where in an experiment it is written.
struct PlacedPlan {
  const ParallelConfig& parallel;
  int system_ranks = 1;
  std::string path;  ///< keys in front of `parallel`: "serving.fleet.0."
};

/// Warns of groups that fit into one system and lie on two, where every message pays the network
/// between.
void warn_of_straddling(const PlacedPlan& plan, const config::Node& node,
                        config::Diagnostics& diagnostics);
/// Warns of ranks that hold copies of experts.
void warn_of_copies(const PlacedPlan& plan, const LlmConfig& llm, const config::Node& node,
                    config::Diagnostics& diagnostics);

/// What helps a plan that does not fit and whose ranks hold every expert: the fewest ranks that
/// would share them and fit, "ep: 8 holds it: 12.8 GB a rank". Empty where there are none.
std::string expert_parallel_hint(const ModelExperiment& experiment);

}  // namespace orrery
