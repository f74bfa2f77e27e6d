// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/store/result_store.h"

namespace orrery {

/// What some places of a plan have.
struct MissingPoints {
  Places places;             ///< places of the points that are missing; those between are no points
  std::uint64_t points = 0;  ///< points that are missing
  std::uint64_t settled = 0;          ///< points that have a result, have failed or cannot be
  std::uint64_t cannot_be = 0;        ///< points of `settled` that cannot be
  std::vector<std::uint64_t> failed;  ///< points of `settled` that have failed, by case
};

/// What is known of points beside the store.
struct KnownPoints {
  std::set<std::string>
      failed;  ///< identities that have failed now; other failures are tried again
  Places cannot_be;
  Places elsewhere;  ///< somebody has them
};

/// Goes through places and asks the store. @param only empty: all places
/// @param patiently runs what reads the store, and may run it again
/// @param go_on asked at each point; where it says no, the rest is left out
MissingPoints missing_points(const Sweep& sweep, const ResultStore& store, const KnownPoints& known,
                             const Places& only,
                             const std::function<void(const std::function<void()>&)>& patiently,
                             const std::function<bool()>& go_on);

}  // namespace orrery
