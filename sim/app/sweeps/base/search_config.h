// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/app/experiments/keys/enum_names.h"
#include "sim/config/declared.h"
#include "sim/graph/costs.h"

namespace orrery {

enum class SearchMethod { kNsga2, kRandom };

/// How `sweep search` looks for the best points of a sweep.
struct SearchConfig {
  SearchMethod algorithm = SearchMethod::kNsga2;
  std::int64_t population = 64;     ///< points that are kept, and new ones in each generation
  std::int64_t evaluations = 1000;  ///< points at the last fidelity
  std::int64_t seed = 1;
  /// Details of the kernel model, each generation thinned from one to the next; empty: points are
  /// as the sweep says.
  std::vector<Fidelity> fidelity;
  static const config::Schema<SearchConfig>& schema();
};

namespace config {

template <>
struct EnumNames<SearchMethod> {
  static constexpr std::pair<SearchMethod, const char*> values[] = {
      {SearchMethod::kNsga2, "nsga2"}, {SearchMethod::kRandom, "random"}};
};

}  // namespace config

}  // namespace orrery
