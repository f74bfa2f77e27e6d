// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/serving_log.h"

#include <algorithm>
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
  served_.push_back({r.id, r.arrival, ended.started, ended.first_token, ended.last_token,
                     ended.moved_at, static_cast<std::int32_t>(r.prompt),
                     static_cast<std::int32_t>(r.output), instance,
                     static_cast<std::int32_t>(ended.preemptions),
                     static_cast<std::int32_t>(ended.found), r.priority});
}

void ServingLog::keep_gaps() {
  for (const auto& [gap, count] : recent_) steady_gaps_.add(gap, count);
  recent_.clear();
}

Seconds mean_lifetime(const std::vector<ServedRequest>& served) {
  Seconds sum{};
  for (const ServedRequest& a : served) sum += to_seconds(a.last_token - a.started);
  return sum / static_cast<double>(served.size());
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace orrery
