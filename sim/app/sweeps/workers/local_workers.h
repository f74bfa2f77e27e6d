// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/sweeps/workers/executor.h"
#include "sim/app/sweeps/workers/memory_admission.h"
#include "sim/app/sweeps/workers/process_memory.h"
#include "sim/app/sweeps/workers/worker_loop.h"

namespace orrery {

/// Processes of this machine, forked from this one as points are submitted: fork from a process
/// that is still small. Each runs many points one after the other, and is replaced when it dies,
/// and after so many points or bytes. As many work as there is memory for. The point of a process
/// that died after others ran in it is tried again in one of its own: what others left may have
/// been why.
class LocalWorkers final : public Executor {
 public:
  using Limits = std::function<PointLimits(std::size_t point)>;

  /// @param work returns what becomes of a point, or throws; runs in the workers
  /// @param limits a point that takes more has failed, and its process is ended; null: none does
  /// @param available bytes that points may still take together
  LocalWorkers(std::size_t jobs, PointWork work, Limits limits = nullptr,
               MemoryAdmission::Available available = available_memory);
  ~LocalWorkers() override;

  void submit(PointRange range) override;
  /// @throws ResourceError where no process can be started, or none lives until its first point
  std::vector<PointOutcome> poll() override;
  void cancel() override;

 private:
  using Clock = std::chrono::steady_clock;
  class SharedPage;
  struct Worker;

  void start_workers();
  bool admits();
  void start(Worker& worker);
  void end(Worker& worker);
  void feed(Worker& worker);
  PointRange next_range();
  void receive(Worker& worker, std::vector<PointOutcome>& outcomes);
  void bury(Worker& worker, std::vector<PointOutcome>& outcomes);
  void look_after_workers();
  void look_after(Worker& worker);
  void wait_for_some(std::vector<PointOutcome>& outcomes);
  std::size_t waiting() const;

  std::size_t jobs_;
  PointWork work_;
  Limits limits_;
  MemoryAdmission admission_;
  std::deque<PointRange> ranges_;  ///< not given to a worker yet
  std::deque<std::size_t> alone_;  ///< points that are tried again in a process of their own
  std::vector<std::unique_ptr<Worker>> workers_;
  bool held_back_ = false;         ///< whether a worker waits for memory
  std::size_t early_deaths_ = 0;   ///< workers in a row that died before they began a point
  Clock::time_point looked_ = {};  ///< when workers were last looked after
};

/// Processors that this process may use.
std::size_t available_processors();

}  // namespace orrery
