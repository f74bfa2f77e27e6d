// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/sweeps/sweep_config.h"
#include "sim/results/run_record.h"
#include "sim/store/result_store.h"

namespace orrery {

/// What a sweep found; records in the order of its points.
struct SweepResults {
  std::vector<RunRecord> records;
  std::size_t from_store = 0;
  std::size_t simulated = 0;
  std::size_t failed = 0;
  double seconds = 0;
};

/// Whether the values of a point cannot stand together.
bool cannot_be(const RunRecord& record);

struct SweepOptions {
  std::size_t jobs = 1;                              ///< processes that simulate
  std::function<void(const std::string&)> progress;  ///< called with the name of a point
  std::function<void(const std::string&)>
      store_locked;  ///< called once where a store is waited for
};

/// Simulates the points that the store does not have and saves them, failures too, which are tried
/// again. Only this process writes, many points in one transaction. What cannot be is not stored,
/// because it costs nothing to find out again. The same results for any number of processes.
/// @throws StoreError, DeterminismError, ResourceError
SweepResults run_sweep(const Sweep& sweep, ResultStore& store, const SweepOptions& options);

/// Waits for a store that another process locks, up to a minute. @param tell called once
void wait_for_store(const std::function<void()>& work,
                    const std::function<void(const std::string&)>& tell);

}  // namespace orrery
