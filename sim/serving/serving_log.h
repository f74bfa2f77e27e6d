// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/serving/request.h"
#include "sim/units/units.h"

namespace orrery {

/// A request that has been answered. Times are ordered as they stand.
struct ServedRequest {
  std::int64_t id = 0;
  Picoseconds arrival = 0;
  Picoseconds started = 0;  ///< begin of the first iteration with a part of its prompt
  Picoseconds first_token = 0;
  Picoseconds last_token = 0;
  Picoseconds moved = kNotYet;  ///< when its cache came from another instance
  std::int32_t prompt = 0;      ///< tokens of the prompt
  std::int32_t output = 0;      ///< tokens of the answer
  std::int32_t instance = 0;
  std::int32_t preemptions = 0;
  std::int32_t found = 0;  ///< tokens of the prompt that were in the cache before
  std::int32_t priority = 0;
};

/// Numbers by what they are worth, to 1 part in 1,024: for more than anybody would keep one by one.
class Histogram {
 public:
  void add(Picoseconds value, std::int64_t count);
  std::int64_t count() const { return count_; }
  /// Exact. 0 where there is none.
  double mean() const;
  /// Value below which `share` of the numbers are, to 1 part in 1,024.
  double quantile(double share) const;

 private:
  std::vector<std::int64_t> counts_;
  std::int64_t count_ = 0;
  double sum_ = 0;
};

/// What came of the requests of a run.
class ServingLog {
 public:
  void add(const RequestState& ended, std::int32_t instance);
  /// Time between two tokens of a sequence that follow each other.
  void add_gap(Picoseconds gap, std::int64_t count) {
    gaps_.add(gap, count);
    if (in_window_) recent_.emplace_back(gap, count);
  }
  /// Gaps from now on may belong to the steady window.
  void begin_window() { in_window_ = true; }
  /// All gaps of the window so far belong to it.
  void keep_gaps();

  /// In the order of their ends.
  const std::vector<ServedRequest>& served() const { return served_; }
  const Histogram& gaps() const { return gaps_; }
  const Histogram& steady_gaps() const { return steady_gaps_; }

 private:
  std::vector<ServedRequest> served_;
  Histogram gaps_, steady_gaps_;
  bool in_window_ = false;
  /// Gaps of the window since the last arrival, with their counts.
  std::vector<std::pair<Picoseconds, std::int64_t>> recent_;
};

/// Requests have to arrive for so many mean lifetimes before a run tells of its steady state.
inline constexpr double kLifetimes = 3;

/// Mean time of a request from the iteration that takes it to its last token; waiting is left out.
/// @param served at least one
Seconds mean_lifetime(const std::vector<ServedRequest>& served);

/// The value below which `share` of all are, between neighbours in proportion, as numpy's default
/// has it; `sorted` must be, and not empty.
double quantile(const std::vector<double>& sorted, double share);

}  // namespace orrery
