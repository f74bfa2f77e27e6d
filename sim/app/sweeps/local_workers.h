// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/sweeps/executor.h"

namespace orrery {

/// Processes of this machine, forked from this one when the first points are submitted: fork from a
/// process that is still small. Each runs many points one after the other, and is replaced when it
/// dies.
class LocalWorkers final : public Executor {
 public:
  /// How long a point may take; 0: as long as it does.
  using TimeLimit = std::function<std::chrono::nanoseconds(std::size_t point)>;

  /// @param work returns what becomes of a point, or throws; runs in the workers
  /// @param limit a point that takes longer has failed, and its process is ended; null: none does
  LocalWorkers(std::size_t jobs, std::function<std::string(std::size_t point)> work,
               TimeLimit limit = nullptr);
  ~LocalWorkers() override;

  void submit(PointRange range) override;
  std::vector<PointOutcome> poll() override;
  void cancel() override;

 private:
  class CurrentPoint;
  struct Worker;

  void start_workers();
  void start(Worker& worker);
  void feed(Worker& worker);
  void receive(Worker& worker, std::vector<PointOutcome>& outcomes);
  void bury(Worker& worker, std::vector<PointOutcome>& outcomes);
  int watch(Worker& worker);
  std::size_t waiting() const;

  std::size_t jobs_;
  std::function<std::string(std::size_t)> work_;
  TimeLimit limit_;
  std::deque<PointRange> ranges_;  ///< not given to a worker yet
  std::vector<std::unique_ptr<Worker>> workers_;
};

/// Processors that this process may use.
std::size_t available_processors();

}  // namespace orrery
