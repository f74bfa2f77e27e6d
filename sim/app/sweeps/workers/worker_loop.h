// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "sim/app/sweeps/workers/executor.h"

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

}  // namespace orrery
