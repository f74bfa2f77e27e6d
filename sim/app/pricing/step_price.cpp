// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_price.h"

#include <algorithm>
#include <functional>

namespace orrery {
namespace {

constexpr double kRatio = 0.985;

const std::array<double, ClockGrid::kPoints>& grid_shares() {
  static const std::array<double, ClockGrid::kPoints> shares = [] {
    std::array<double, ClockGrid::kPoints> all{};
    double share = 1;
    for (double& point : all) {
      point = share;
      share *= kRatio;
    }
    return all;
  }();
  return shares;
}

}  // namespace

double ClockGrid::share(std::size_t point) { return grid_shares()[point]; }

ClockGrid::Place ClockGrid::place(double share) {
  const auto& shares = grid_shares();
  if (share >= 1) return {};
  // The first point below; beyond the last one the line through the last two goes on.
  const auto below = std::upper_bound(shares.begin(), shares.end(), share, std::greater<>());
  const auto second =
      std::min<std::size_t>(static_cast<std::size_t>(below - shares.begin()), kPoints - 1);
  const double from = 1 / shares[second - 1], to = 1 / shares[second];
  return {second - 1, second, (1 / share - from) / (to - from)};
}

void StepPrice::add(const StepPrice& other, double times) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    at[i].time += times * other.at[i].time;
    at[i].energy += times * other.at[i].energy;
  }
  highest = std::max(highest, other.highest);
  kernels += times * other.kernels;
}

}  // namespace orrery
