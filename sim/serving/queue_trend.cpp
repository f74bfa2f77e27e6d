// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/queue_trend.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include "sim/events/event_queue.h"

namespace orrery {
namespace {

constexpr std::size_t kStretches = 20;

/// Requests that wait, in the mean over stretches of equal length between two times in seconds.
using Waiting = std::array<double, kStretches>;

Waiting waiting_between(const std::vector<ServedRequest>& served, double from, double until) {
  const double width = (until - from) / kStretches;
  Waiting waited{};
  for (const ServedRequest& a : served) {
    const double begin = std::max(to_seconds(a.arrival).base(), from) - from;
    const double end = std::min(to_seconds(a.started).base(), until) - from;
    if (end <= begin) continue;
    const auto first = static_cast<std::size_t>(begin / width);
    for (std::size_t i = first; i < kStretches && static_cast<double>(i) * width < end; ++i) {
      const double low = std::max(begin, static_cast<double>(i) * width);
      waited[i] += std::min(end, static_cast<double>(i + 1) * width) - low;
    }
  }
  for (double& w : waited) w /= width;
  return waited;
}

double mean_of(const Waiting& waited) {
  double mean = 0;
  for (const double w : waited) mean += w / kStretches;
  return mean;
}

/// A straight line through as many points, by least squares.
struct Line {
  double slope = 0, mean = 0, left = 0;  ///< left: sum of the squares beside it

  Line(const Waiting& x, const Waiting& y) {
    double mean_x = 0, across = 0, spread = 0, squares = 0;
    for (std::size_t i = 0; i < kStretches; ++i) {
      mean_x += x[i] / kStretches;
      mean += y[i] / kStretches;
    }
    for (std::size_t i = 0; i < kStretches; ++i) {
      across += (x[i] - mean_x) * (y[i] - mean);
      spread += (x[i] - mean_x) * (x[i] - mean_x);
      squares += (y[i] - mean) * (y[i] - mean);
    }
    slope = across / spread;
    left = std::max(0.0, squares - slope * across);
  }
};

/// Stretches up to `start` are alike, and what follows grows.
Waiting grows_from(std::size_t start) {
  Waiting x{};
  for (std::size_t i = start; i < kStretches; ++i) x[i] = static_cast<double>(i - start);
  return x;
}

/// The first stretch of the growth that a level and a line after it fit best.
std::size_t begin_of_growth(const Waiting& waited) {
  constexpr std::size_t kFewest = 3;  // points of a line
  std::size_t best = 0;
  double least = Line(grows_from(0), waited).left;
  for (std::size_t start = 1; start + kFewest <= kStretches; ++start) {
    const double left = Line(grows_from(start), waited).left;
    if (left >= least) continue;
    least = left;
    best = start;
  }
  return best;
}

/// Arrivals and starts of requests, sorted: those that wait are the difference.
class Waiters {
 public:
  explicit Waiters(const std::vector<ServedRequest>& served) {
    for (const ServedRequest& a : served) {
      come_.push_back(to_seconds(a.arrival).base());
      left_.push_back(to_seconds(a.started).base());
    }
    std::sort(come_.begin(), come_.end());
    std::sort(left_.begin(), left_.end());
  }

  double arrived(double until) const { return below(come_, until); }
  double waiting(double at) const { return below(come_, at) - below(left_, at); }
  /// The fewest that wait at any time from one to another.
  double fewest(double from, double until) const {
    auto come = std::upper_bound(come_.begin(), come_.end(), from);
    auto left = std::upper_bound(left_.begin(), left_.end(), from);
    double now = waiting(from), least = now;
    for (; left != left_.end() && *left <= until; ++left) {
      for (; come != come_.end() && *come <= *left; ++come) ++now;
      least = std::min(least, --now);
    }
    return least;
  }

 private:
  static double below(const std::vector<double>& sorted, double at) {
    return static_cast<double>(std::upper_bound(sorted.begin(), sorted.end(), at) - sorted.begin());
  }

  std::vector<double> come_, left_;
};

/// Growth of the queue over the arrivals of the same time, by batch means: increments over batches
/// of equal length are nearly independent, whereas the queue itself is correlated over a relaxation
/// time. In a stable queue they compensate each other, so the bounds err on the wide side.
struct Growth {
  double share = 0;   ///< requests that the queue gains for each that arrives
  double within = 0;  ///< half of the 90 % interval of it

  Growth(const Waiters& waiters, double from, double until) {
    const double width = (until - from) / kStretches;
    const double first = waiters.waiting(from), last = waiters.waiting(until);
    const double mean = (last - first) / kStretches;
    double squares = 0, before = first;
    for (std::size_t i = 1; i <= kStretches; ++i) {
      const double now = waiters.waiting(from + static_cast<double>(i) * width);
      squares += (now - before - mean) * (now - before - mean);
      before = now;
    }
    constexpr double kStudent = 1.729;  // Student's t, 19 degrees of freedom, 95 %, one-sided
    const double deviation = std::sqrt(squares / (kStretches - 1) * kStretches);
    const double arrived = std::max(1.0, waiters.arrived(until) - waiters.arrived(from));
    share = (last - first) / arrived;
    within = kStudent * deviation / arrived;
  }
};

/// Growth of the queue that matters, per arriving request: between none and the 4.8 % of a load of
/// 1.05.
constexpr double kMatters = 0.02;
/// Requests beyond which nobody waits for a judgement, over those that there were.
constexpr double kMostLonger = 100;

/// The state of the load, and the arrivals that would decide it.
void judge(const std::vector<ServedRequest>& served, double first, double until,
           QueueTrend& trend) {
  const auto count = static_cast<double>(served.size());
  const auto more = [&](double factor) {
    trend.load = LoadState::kUndecided;
    trend.deciding = std::ceil(count * std::clamp(factor, 1.5, kMostLonger));
  };
  const double horizon = kLifetimes * mean_lifetime(served).base();
  const double span = until - first;
  if (span < horizon) return more(horizon / span);
  const Waiters waiters(served);
  const Growth growth(waiters, first + span / 4, until);
  const double early = mean_of(waiting_between(served, first, first + span / 4));
  const bool returns = waiters.fewest(first + span / 2, until) <= early;
  if (returns || growth.share + growth.within < kMatters) {
    trend.load = LoadState::kStable;
  } else if (growth.share > std::max(kMatters, growth.within)) {
    trend.load = LoadState::kSaturated;
  } else {
    const double apart = std::max(std::abs(growth.share - kMatters), 1e-9);
    more(growth.within * growth.within / (apart * apart));
  }
}

}  // namespace

QueueTrend queue_trend(const std::vector<ServedRequest>& served) {
  constexpr double kWarmUp = 0.1;
  QueueTrend trend;
  Picoseconds begin = kNever, last = 0;
  for (const ServedRequest& a : served) {
    begin = std::min(begin, a.arrival);
    last = std::max(last, a.arrival);
  }
  const double first = to_seconds(begin).base(), until = to_seconds(last).base();
  const double from = first + kWarmUp * (until - first);
  const double width = (until - from) / kStretches;
  trend.from = trend.since = to_picoseconds(Seconds(from));
  if (width <= 0) return trend;
  const Waiting waited = waiting_between(served, from, until);
  const Line line(grows_from(0), waited);
  trend.mean = line.mean;
  trend.slope = line.slope / width;
  judge(served, first, until, trend);
  trend.since =
      to_picoseconds(Seconds(from + static_cast<double>(begin_of_growth(waited)) * width));
  return trend;
}

}  // namespace orrery
