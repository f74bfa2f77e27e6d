// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_order.h"

#include <algorithm>
#include <cmath>

namespace orrery {
namespace {

constexpr double kSecondMs = 1e3;  ///< ms of a second
constexpr double kAlike = 1.1;     ///< ratio from which on two systems differ

/// As tables derive it: every client has its next answer when the last one ends.
OperatingPoint point_of(const ServingRow& row, double ttft_ms, double tpot_ms) {
  const auto tokens = static_cast<double>(row.osl);
  const double answer = ttft_ms + tpot_ms * (tokens - 1);
  return {kSecondMs / tpot_ms,
          static_cast<double>(row.concurrency) * tokens / answer * kSecondMs / row.gpus};
}

/// What two systems are worth to users who want so many tokens/s: above 0 where the first is.
std::optional<double> advantage(const std::vector<OperatingPoint>& a,
                                const std::vector<OperatingPoint>& b, double user) {
  const auto first = front_at(a, user), second = front_at(b, user);
  if (!first && !second) return std::nullopt;
  if (!first || !second) return first ? 1 : -1;
  return std::log(*first / *second);
}

void judge(const std::vector<OperatingPoint>& points, const std::vector<OperatingPoint>& measured_a,
           const std::vector<OperatingPoint>& measured_b,
           const std::vector<OperatingPoint>& predicted_a,
           const std::vector<OperatingPoint>& predicted_b, ServingOrder::Count& count) {
  for (const OperatingPoint& point : points) {
    const auto a = front_at(measured_a, point.user), b = front_at(measured_b, point.user);
    const bool slowest = point.user < measured_a.back().user || point.user < measured_b.back().user;
    if (!a || !b || slowest) continue;
    const double measured = std::log(*a / *b);
    if (std::abs(measured) < std::log(kAlike)) continue;
    const auto predicted = advantage(predicted_a, predicted_b, point.user);
    ++count.all;
    count.right += predicted && *predicted * measured > 0 ? 1 : 0;
  }
}

}  // namespace

std::vector<OperatingPoint> operating_front(std::vector<OperatingPoint> points) {
  std::sort(points.begin(), points.end(), [](const OperatingPoint& a, const OperatingPoint& b) {
    return a.user != b.user ? a.user > b.user : a.accelerator > b.accelerator;
  });
  std::vector<OperatingPoint> front;
  for (const OperatingPoint& point : points)
    if (front.empty() || point.accelerator > front.back().accelerator) front.push_back(point);
  return front;
}

std::optional<double> front_at(const std::vector<OperatingPoint>& front, double user) {
  if (front.empty() || user > front.front().user) return std::nullopt;
  for (std::size_t i = 1; i < front.size(); ++i) {
    const OperatingPoint& fast = front[i - 1];
    const OperatingPoint& slow = front[i];
    if (user < slow.user) continue;
    const double share = std::log(user / slow.user) / std::log(fast.user / slow.user);
    return slow.accelerator * std::pow(fast.accelerator / slow.accelerator, share);
  }
  return front.back().accelerator;
}

void ServingOrder::add(const ServingComparison& c) {
  if (!c.reason.empty()) return;
  const std::string key = c.row.model + " " + std::to_string(c.row.isl) + " " +
                          std::to_string(c.row.osl) + " " + c.row.precision;
  Points& points = groups_[key][c.row.system];
  points.measured.push_back(point_of(c.row, c.row.ttft_ms, c.row.tpot_ms));
  points.predicted.push_back(point_of(c.row, c.ttft_ms, c.tpot_ms));
}

std::map<std::string, ServingOrder::Count> ServingOrder::pairs() const {
  std::map<std::string, Count> counts;
  for (const auto& [key, systems] : groups_) {
    for (auto a = systems.begin(); a != systems.end(); ++a) {
      const auto measured_a = operating_front(a->second.measured);
      const auto predicted_a = operating_front(a->second.predicted);
      for (auto b = std::next(a); b != systems.end(); ++b) {
        const auto measured_b = operating_front(b->second.measured);
        const auto predicted_b = operating_front(b->second.predicted);
        Count& count = counts[a->first + ", " + b->first];
        for (const auto* points : {&measured_a, &measured_b})
          judge(*points, measured_a, measured_b, predicted_a, predicted_b, count);
      }
    }
  }
  std::erase_if(counts, [](const auto& entry) { return entry.second.all == 0; });
  return counts;
}

}  // namespace orrery
