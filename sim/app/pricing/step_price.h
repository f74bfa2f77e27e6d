// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "sim/machine/accelerator_config.h"
#include "sim/serving/iteration.h"
#include "sim/units/time.h"

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

/// The time of a step that is a sum of prices, at the clock of its power state. In the steady state
/// that is the clock at which the step, repeated without end, keeps the cap over every window of
/// power.response: found as replay_under_cap() finds it, with power taken to be even over a step,
/// and over the part of it in which a pipeline stage is busy. Where the host enqueues kernel by
/// kernel, a step takes at least what that takes.
class StepClock {
 public:
  /// @param stages of the pipeline, which work one after the other and share energy alike
  StepClock(const AcceleratorConfig& accelerator, PowerState state, int stages);

  /// With the energy of a rank of each stage.
  /// @throws config::KeyError where no clock keeps the cap
  IterationPrice price(const PriceTerms& terms) const;

 private:
  StepPrice::At sum_at(const PriceTerms& terms, double share) const;
  /// Watts of one package: the most that a window averages.
  Watts power(StepPrice::At step) const;

  PowerConfig limits_;
  bool steady_;
  double dies_, stages_;
  double window_;   ///< window of power.response in picoseconds
  double enqueue_;  ///< picoseconds a kernel
};

}  // namespace orrery
