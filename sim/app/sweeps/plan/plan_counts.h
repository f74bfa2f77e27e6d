// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/sweeps/plan/sweep.h"
#include "sim/store/result_store.h"

namespace orrery {

/// What a plan has, by place.
struct PlanCounts {
  std::uint64_t places = 0;  ///< the cross product; the following add up to it
  std::uint64_t none = 0;    ///< combinations that a `when` makes no point
  std::vector<std::vector<std::uint64_t>> excluded;  ///< places by case and rule of `where`
  std::uint64_t impossible = 0;                      ///< points whose values cannot stand together
  std::uint64_t done = 0;                            ///< points that the store has a result of
  std::uint64_t failed = 0;                          ///< points that failed, and are tried again
  std::uint64_t to_do = 0;                           ///< points without either

  std::uint64_t points() const { return impossible + done + failed + to_do; }
};

/// Places that were looked at, evenly over the plan, and what the whole is likely to have.
struct PlanEstimate {
  std::uint64_t looked_at = 0;
  PlanCounts counts;  ///< scaled up to the plan
  /// Time of a point on one processor in s, and what it rests on: "37 results of this plan in the
  /// store", "3 points simulated now". None: there is nothing to go by.
  std::optional<double> point_s;
  std::string point_s_from;
};

/// A place that is excluded, to be shown.
struct ExcludedPlace {
  std::uint64_t place = 0;
  std::uint32_t case_index = 0;
  std::size_t rule = 0;
  std::uint64_t covers = 0;  ///< places from this one on that are excluded alike
  std::string axes;          ///< "tp 8, micro 4"
};

/// Looks at some hundred places, and asks the store how long those of them took that it has;
/// simulates a few where it has none.
PlanEstimate estimate_plan(const Sweep& sweep, const ResultStore& store);

struct PlanCountOptions {
  std::size_t rows = 0;  ///< excluded places to be listed, the first of the plan
  std::function<void(std::uint64_t places)> progress;  ///< called now and then
};

struct PlanListing {
  PlanCounts counts;
  std::vector<ExcludedPlace> excluded;
  bool whole = true;  ///< false: there were too many places to go through
};

/// Counts every place, in one pass over the identities. After some seconds it ends where the rest
/// would take long.
PlanListing count_plan(const Sweep& sweep, const ResultStore& store,
                       const PlanCountOptions& options);

}  // namespace orrery
