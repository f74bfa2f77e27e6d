// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/serving_order.h"

#include <fmt/core.h>

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

/// A system of a group by its measured and predicted fronts.
struct SystemFronts {
  std::string system;
  std::vector<OperatingPoint> measured, predicted;
};

/// At the tokens/s of a user of these points.
void judge(const std::string& runs, const std::vector<OperatingPoint>& points,
           const SystemFronts& first, const SystemFronts& second, std::vector<JudgedOrder>& out) {
  for (const OperatingPoint& point : points) {
    const double user = point.user;
    const auto a = front_at(first.measured, user), b = front_at(second.measured, user);
    const bool slowest = user < first.measured.back().user || user < second.measured.back().user;
    if (!a || !b || slowest || std::abs(std::log(*a / *b)) < std::log(kAlike)) continue;
    out.push_back({runs, first.system, second.system, user, *a, *b, front_at(first.predicted, user),
                   front_at(second.predicted, user)});
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

bool JudgedOrder::right() const {
  const double measured = std::log(measured_first / measured_second);
  if (!predicted_first && !predicted_second) return false;
  if (!predicted_first || !predicted_second) return predicted_first.has_value() == (measured > 0);
  return std::log(*predicted_first / *predicted_second) * measured > 0;
}

void ServingOrder::add(const ServingComparison& c) {
  if (!c.reason.empty()) return;
  const std::string key = fmt::format("{} {} {} {}", c.row.model, c.row.isl, c.row.osl,
                                      c.row.precision.empty() ? "bf16" : c.row.precision);
  Points& points = groups_[key][c.row.system];
  points.measured.push_back(point_of(c.row, c.row.ttft_ms, c.row.tpot_ms));
  points.predicted.push_back(point_of(c.row, c.ttft_ms, c.tpot_ms));
}

std::vector<JudgedOrder> ServingOrder::judged() const {
  std::vector<JudgedOrder> judgements;
  for (const auto& [runs, systems] : groups_) {
    std::vector<SystemFronts> fronts;
    for (const auto& [system, points] : systems)
      fronts.push_back(
          {system, operating_front(points.measured), operating_front(points.predicted)});
    for (std::size_t a = 0; a < fronts.size(); ++a)
      for (std::size_t b = a + 1; b < fronts.size(); ++b)
        for (const std::size_t i : {a, b})
          judge(runs, fronts[i].measured, fronts[a], fronts[b], judgements);
  }
  return judgements;
}

std::map<std::string, ServingOrder::Count> ServingOrder::pairs() const {
  std::map<std::string, Count> counts;
  for (const JudgedOrder& order : judged()) {
    Count& count = counts[order.first + ", " + order.second];
    ++count.all;
    count.right += order.right() ? 1 : 0;
  }
  return counts;
}

}  // namespace orrery
