// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/app/sweeps/base/places.h"
#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/plan/sweep.h"
#include "sim/app/sweeps/sweep_tally.h"
#include "sim/results/run_record.h"
#include "sim/store/result_store.h"

namespace orrery {

struct PointResult {
  SweepPoint point;
  RunRecord record;
};

struct SweepResults {
  /// Points that a table of a sweep shows; of larger sweeps the store is asked.
  static constexpr std::uint64_t kMostKept = 5000;

  /// In the order of the plan. Of plans of more places: the first that failed and could not be.
  std::vector<PointResult> kept;
  bool all_kept = true;
  std::uint64_t points = 0;  ///< those below, excluded ones left out
  std::uint64_t from_store = 0;
  std::uint64_t simulated = 0;
  std::uint64_t failed = 0;
  std::uint64_t impossible = 0;  ///< points whose values cannot stand together
  std::uint64_t infeasible = 0;  ///< other points without a result: those that do not fit in memory
  /// Places that each rule of `where` excludes, by variant (Sweep::rows).
  std::vector<std::vector<std::uint64_t>> excluded;
  std::string stopped;  ///< why points are left; empty: none are
  double seconds = 0;
};

/// Whether the values of a point cannot stand together.
bool cannot_be(const RunRecord& record);

struct SweepOptions {
  std::size_t jobs = 1;  ///< processes that simulate
  Places places = {};    ///< places that are looked at; empty: all
  /// Whether the point of a place may be simulated; null: each may. Of one that may not, the store
  /// is asked alone: its failure stands, and without a row it is left out.
  std::function<bool(std::uint64_t place)> simulates = {};
  /// Called for a point that turned out to be none when it ran, which no store has.
  std::function<void(std::uint64_t place)> cannot_be = {};
  /// Identities of the points that are looked at, others are passed over; none: all are.
  std::optional<std::set<std::string>> only = {};
  bool keep_all = false;  ///< all results are in `kept`, of large plans too
  std::function<void(const SweepTally&)> progress;  ///< called after each step of the run
  std::function<void(const std::string&)>
      store_locked;  ///< called once where a store is waited for
};

/// Simulates the points that the store does not have and saves them, failures too, which are tried
/// again. The plan is read while points run: the first runs at once, whatever its length. Only this
/// process writes, many points in one transaction. What cannot be is not stored, because it costs
/// nothing to find out again. The same results for any number of processes.
/// @throws StoreError, DeterminismError, ResourceError
SweepResults run_sweep(const Sweep& sweep, ResultStore& store, const SweepOptions& options);

/// Waits for a store that another process locks, up to a minute. @param tell called once,
/// after half of it
void wait_for_store(const std::function<void()>& work,
                    const std::function<void(const std::string&)>& tell);

/// Fills in what a record has of a point beside its result.
void describe(const PlanCursor& at, RunRecord& record);

/// The record of a point that has no result, for some reason.
RunRecord without_result(const PlanCursor& at, RunStatus status, std::string reason);

}  // namespace orrery
