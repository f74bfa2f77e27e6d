// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace orrery {

/// Shares of the boost clock at which parts of steps are priced: from 1 down, each 1.5 % below the
/// one before, to half. Times between two of them are interpolated in the reciprocal share, in
/// which they are straight but for the shares from which on kernels take longer: within 0.4 %.
class ClockGrid {
 public:
  static constexpr std::size_t kPoints = 48;

  static double share(std::size_t point);
  /// The two points around a share, and the weight of the second.
  struct Place {
    std::size_t first = 0, second = 0;
    double weight = 0;
  };
  static Place place(double share);
};

/// What a part of a step costs on one rank, at each share of ClockGrid.
struct StepPrice {
  struct At {
    double time = 0;    ///< time in picoseconds
    double energy = 0;  ///< joules above idle
  };
  std::array<At, ClockGrid::kPoints> at{};
  double highest = 0;  ///< share of the boost clock above which no kernel of it runs
  double kernels = 0;  ///< kernels launched

  void add(const StepPrice& other, double times);
};

/// A price that is part of a sum.
struct PriceTerm {
  const StepPrice* price = nullptr;
  double weight = 1;
};
using PriceTerms = std::vector<PriceTerm>;

}  // namespace orrery
