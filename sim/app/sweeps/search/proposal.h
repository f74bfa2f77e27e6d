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
