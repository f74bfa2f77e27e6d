// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/app/sweeps/search/search.h"
#include "sim/store/result_store.h"

namespace orrery {

/// A value as it is written, as JSON: numbers and flags as such, "4 TB/s" as text.
nlohmann::ordered_json to_json(const config::Node& value);

/// A point as programs write it: {"point": identity, "case": ..., "variant": ..., "parameters":
/// {path: value}}, which `sweep tell` reads.
nlohmann::ordered_json point_json(const Sweep& sweep, const SweepPoint& point,
                                  const std::string& identity);

/// The name under which a store has what somebody else measured or simulated of a point: never
/// taken for a result of ours.
std::string told_identity(const std::string& identity);

/// Places that a search begins with, the best of those that the store has results of: a half of the
/// population at most. They are chosen when it begins and kept in the store, so that it goes the
/// same way when it is resumed. Plans of more than a million places begin with none.
/// @param sweep the plan at the last fidelity @throws StoreError
std::vector<std::uint64_t> beginning_of(const Sweep& sweep, const SearchConfig& config,
                                        ResultStore& store);

/// What a search asks others to evaluate next.
struct Proposals {
  std::vector<nlohmann::ordered_json> points;
  std::uint64_t evaluated = 0;  ///< points that have a score at the last fidelity
  bool at_end = false;          ///< whether the search asks for nothing more
};

/// Goes through a search, or begins it, as far as the store knows the scores: what others told,
/// else results of ours. @param most points that are given @throws as Search, StoreError
Proposals propose(const std::vector<Sweep>& levels, const SearchConfig& config, ResultStore& store,
                  std::size_t most);

}  // namespace orrery
