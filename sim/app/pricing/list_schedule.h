// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace orrery {

/// Kernels and transfers in the order in which they are issued, where no replay of a graph is
/// needed: kernels one after the other on one stream, transfers one after the other on each of
/// theirs. A kernel is slower while a transfer is in flight. Times in any unit.
class ListSchedule {
 public:
  /// @param transfer_streams streams that carry transfers
  explicit ListSchedule(std::size_t transfer_streams) : streams_(transfer_streams) {}

  /// A kernel that begins once `ready` is over and the kernels before it have ended.
  /// @param alone its time while no transfer is in flight
  /// @param slowdown returns the slowdown during a transfer, by the number of the transfer
  /// @return when it ends
  template <class Slowdown>
  double kernel(double ready, double alone, const Slowdown& slowdown) {
    compute_ = std::max(compute_, ready);
    std::erase_if(flights_, [this](const Flight& flight) { return flight.end <= compute_; });
    double left = alone;
    for (const Flight& flight : flights_) {
      if (left <= 0) break;
      if (flight.end <= compute_) continue;
      const double times = slowdown(flight.number);
      if (times == 1) continue;
      const double before = std::clamp(flight.begin - compute_, 0.0, left);
      compute_ += before;
      left -= before;
      const double beside = std::min(left, (flight.end - compute_) / times);
      compute_ += beside * times;
      left -= beside;
    }
    compute_ += left;
    return compute_;
  }

  /// A transfer that begins once `ready` is over and those before it on its stream have ended.
  /// @param number what `slowdown` knows it by
  /// @return when it ends
  double transfer(std::size_t stream, double ready, double time, std::size_t number) {
    const double begin = std::max(ready, streams_.at(stream));
    streams_.at(stream) = begin + time;
    flights_.push_back({begin, begin + time, number});
    return begin + time;
  }

  /// When the last kernel so far ends.
  double compute() const { return compute_; }

 private:
  struct Flight {
    double begin = 0, end = 0;
    std::size_t number = 0;
  };

  double compute_ = 0;
  std::vector<double> streams_;  ///< when each is free
  std::vector<Flight> flights_;  ///< transfers that a later kernel may still meet, as issued
};

}  // namespace orrery
