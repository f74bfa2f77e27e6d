// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "sim/app/sweeps/sweep_config.h"
#include "sim/results/run_record.h"

namespace orrery {

/// The best result by an objective.
struct BestResult {
  std::string objective;  ///< metric, quantile of one, or path of the configuration
  bool most = true;       ///< whether more of it is better
  double value = 0;
  std::string unit;
  std::string name, identity;  ///< name and identity of the point
};

/// How far a run of a sweep has come: what executors fill in, and what progress is told from.
struct SweepTally {
  std::uint64_t places = 0;      ///< places of the plan
  std::uint64_t done = 0;        ///< places that are settled, whichever way
  std::uint64_t simulated = 0;   ///< points that ran, those that failed too
  std::uint64_t from_store = 0;  ///< points that the store had
  std::uint64_t excluded = 0;    ///< places that a rule excludes
  std::uint64_t impossible = 0;  ///< points that cannot be
  std::uint64_t failed = 0;
  std::uint64_t tasks_run = 0;   ///< tasks of an executor that work
  std::uint64_t tasks_wait = 0;  ///< tasks that have not begun
  std::string last;              ///< name of the last point
  /// Best of the results that this run made or read, by the first objective of the first case.
  std::optional<BestResult> best;
};

/// Keeps the best result of a run by the sweep's first objective.
class BestSoFar {
 public:
  /// The objective is the first of the first case, else what its `choose` optimises.
  /// @param config has to outlive this
  explicit BestSoFar(const SweepConfig& config);

  /// Looks at a result of a case. Results that break the limits of the case's `choose`, and those
  /// without a value of the objective, do not count. @param name of the point, asked where it is
  /// the best
  void look_at(const RunRecord& record, std::size_t case_index,
               const std::function<std::string()>& name);
  const std::optional<BestResult>& result() const { return best_; }

 private:
  const SweepConfig& config_;
  ObjectiveConfig objective_;
  std::optional<BestResult> best_;
};

}  // namespace orrery
