// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "sim/config/declared.h"
#include "sim/config/file_path.h"
#include "workloads/plan/expert_placement.h"

namespace orrery {

/// How often tokens pick each expert of a layer, all layers alike, and where experts lie.
struct ExpertRoutingConfig {
  std::optional<double> zipf;  ///< exponent of a power law
  std::vector<double> loads;   ///< measured loads of the experts, by their ids
  FilePath loads_file;         ///< table of loads, in their place
  std::int64_t seed = 1;       ///< says which expert has which place in the power law
  std::int64_t redundant_experts = 0;
  ExpertBalancing balancing = ExpertBalancing::kNone;
  std::optional<double> balancedness;  ///< mean over most tokens of a rank, in their place
  static const config::Schema<ExpertRoutingConfig>& schema();

  /// The same with what stands in the file as `loads`.
  /// @throws config::ConfigError for a file that cannot be read, or is no table of loads
  ExpertRoutingConfig with_file_read() const;
  /// Loads of that many experts. `loads_file` must have been read.
  std::vector<double> popularity(std::int64_t experts) const;
};

/// @throws config::KeyError below "expert_routing" for a model or a plan that it does not fit
void require_supported(const ExpertRoutingConfig& routing, const LlmConfig& model, int ep);

/// The rank of an expert parallel group that the others wait for.
HeaviestRank heaviest_rank(const MoeConfig& moe, int ep, const ExpertRoutingConfig& routing);

template <>
struct config::EnumNames<ExpertBalancing> {
  static constexpr std::pair<ExpertBalancing, const char*> values[] = {
      {ExpertBalancing::kNone, "none"}, {ExpertBalancing::kEplb, "eplb"}};
};

}  // namespace orrery
