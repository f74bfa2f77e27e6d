// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/serving_log.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>

namespace orrery {
namespace {

/// Values below 2^kDigits one by one, those above by their first kDigits binary digits.
constexpr int kDigits = 11;

std::size_t place_of(Picoseconds value) {
  const auto width = static_cast<int>(std::bit_width(value));
  if (width <= kDigits) return static_cast<std::size_t>(value);
  const int shift = width - kDigits;
  return (static_cast<std::size_t>(shift) << (kDigits - 1)) +
         static_cast<std::size_t>(value >> static_cast<unsigned>(shift));
}

/// The middle of the values of a place.
double value_at(std::size_t place) {
  constexpr std::size_t kHalf = std::size_t{1} << (kDigits - 1);
  if (place < 2 * kHalf) return static_cast<double>(place);
  const std::size_t shift = place / kHalf - 1;
  const std::size_t digits = place - shift * kHalf;
  return (static_cast<double>(digits) + 0.5) * std::ldexp(1.0, static_cast<int>(shift));
}

}  // namespace

void Histogram::add(Picoseconds value, std::int64_t count) {
  if (count == 0) return;
  const std::size_t place = place_of(value);
  if (place >= counts_.size()) counts_.resize(place + 1);
  counts_[place] += count;
  count_ += count;
  sum_ += static_cast<double>(value) * static_cast<double>(count);
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

double Histogram::quantile(double share) const {
  const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(count_ - 1));
  std::int64_t below = 0;
  for (std::size_t place = 0; place < counts_.size(); ++place) {
    below += counts_[place];
    if (below > wanted) return value_at(place);
  }
  return 0;
}

void ServingLog::add(const RequestState& ended, std::int32_t instance) {
  const Request& r = ended.request;
  answers_.push_back({r.id, r.arrival, ended.started, ended.first_token, ended.last_token,
                      ended.moved_at, static_cast<std::int32_t>(r.prompt),
                      static_cast<std::int32_t>(r.output), instance,
                      static_cast<std::int32_t>(ended.preemptions),
                      static_cast<std::int32_t>(ended.found), r.priority});
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

namespace {

constexpr std::size_t kStretches = 20;
constexpr double kMiddle = (kStretches - 1) / 2.0;

/// Requests that wait, in the mean over stretches of equal length between two times in seconds.
using Waiting = std::array<double, kStretches>;

Waiting waiting_between(const std::vector<ServedRequest>& answers, double from, double until) {
  const double width = (until - from) / kStretches;
  Waiting waited{};
  for (const ServedRequest& a : answers) {
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

}  // namespace

QueueTrend queue_trend(const std::vector<ServedRequest>& answers) {
  constexpr double kWarmUp = 0.1;
  constexpr double kConfident = 1.734;  // Student's t, 18 degrees of freedom, 95 %, one-sided
  QueueTrend trend;
  Picoseconds last = 0;
  for (const ServedRequest& a : answers) last = std::max(last, a.arrival);
  const double until = to_seconds(last).base();
  const double from = kWarmUp * until;
  const double width = (until - from) / kStretches;
  trend.from = trend.since = to_picoseconds(Seconds(from));
  if (width <= 0) return trend;
  const Waiting waited = waiting_between(answers, from, until);
  const Line line(grows_from(0), waited);
  double spread = 0;
  for (std::size_t i = 0; i < kStretches; ++i)
    spread += (static_cast<double>(i) - kMiddle) * (static_cast<double>(i) - kMiddle);
  trend.mean = line.mean;
  trend.slope = line.slope / width;
  trend.deviation = std::sqrt(line.left / (kStretches - 2) / spread) / width;
  trend.saturated = trend.slope > kConfident * trend.deviation;
  trend.since =
      to_picoseconds(Seconds(from + static_cast<double>(begin_of_growth(waited)) * width));
  return trend;
}

}  // namespace orrery
