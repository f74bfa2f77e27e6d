// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/pricing/step_price.h"
#include "sim/machine/accelerator_config.h"
#include "sim/serving/iteration.h"
#include "sim/units/time.h"

namespace orrery {

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
