// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/sweeps/base/places.h"
#include "sim/app/sweeps/workers/outcome.h"
#include "sim/app/sweeps/workers/process_memory.h"

struct rusage;

namespace orrery {

/// Why a worker was ended.
enum class WorkerEnd { kByItself, kLate, kMemory };

/// What a worker and its parent both see: memory that outlives it.
struct WorkerPage {
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  std::atomic<std::uint64_t> point{
      kNone};  ///< point that it is on; kNone: it has not begun what it was given
  std::atomic<std::int64_t> begin_ns{0};    ///< when that began, on the machine's steady clock
  std::atomic<std::int64_t> base_bytes{0};  ///< resident before its first point
  std::atomic<WorkerEnd> end{WorkerEnd::kByItself};

  void begin(std::size_t of_point);
  /// Bytes that a worker of so many resident bytes has grown by: none before it has stored
  /// base_bytes, or the memory that a new process shares with its parent would count as taken by
  /// its point.
  std::int64_t grown_to(std::int64_t bytes) const;
  std::chrono::nanoseconds since_begin() const;
};

using PointWork = std::function<std::string(std::size_t point)>;

/// What runs in a worker, until there is nothing more to do, nobody who wants it done, or it is to
/// be replaced. @param file socket to the parent, which sends PointRange and gets outcomes
void run_worker(int file, WorkerPage& page, const PointWork& work,
                const std::function<PointLimits(std::size_t)>& limits);

/// Takes whole outcomes out of what a worker has sent; what is left is the beginning of another.
std::vector<PointOutcome> take_outcomes(std::string& received);

/// CPU and memory, without the rest.
PointUse use_of(const rusage& usage);

/// @return false: the other end is gone
bool send_all(int file, const char* data, std::size_t size);

/// Runs points in processes of this machine, forked from this one as points are submitted: fork
/// from a process that is still small. Each runs many points one after the other, and is replaced
/// when it dies, and after so many points or bytes. As many work as there is memory for. The point
/// of a process that died after others ran in it is tried again in one of its own: what others left
/// may have been why.
class LocalWorkers {
 public:
  using Limits = std::function<PointLimits(std::size_t point)>;

  /// @param work returns what becomes of a point, or throws; runs in the workers
  /// @param limits a point that takes more has failed, and its process is ended; null: none does
  /// @param available bytes that points may still take together
  LocalWorkers(std::size_t jobs, PointWork work, Limits limits = nullptr,
               MemoryAdmission::Available available = available_memory);
  ~LocalWorkers();
  LocalWorkers(const LocalWorkers&) = delete;
  LocalWorkers& operator=(const LocalWorkers&) = delete;
  void submit(PointRange range);
  /// Waits until points are done, and gives them in any order. Empty: all that was submitted has
  /// been given, or a signal came that LeavesOnSignals notes.
  /// @throws ResourceError where no process can be started, or none lives until its first point
  std::vector<PointOutcome> poll();
  /// Ends what runs; what was not given is lost.
  void cancel();

 private:
  using Clock = std::chrono::steady_clock;
  struct Unmap;
  using SharedPage = std::unique_ptr<WorkerPage, Unmap>;
  static SharedPage shared_page();
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

std::size_t available_processors();

}  // namespace orrery
