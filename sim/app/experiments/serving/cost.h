// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/serving/fleet.h"
#include "sim/results/run_record.h"
#include "sim/serving/service.h"

namespace orrery {

/// What a run took of the fleet beside time, and what it gave for it.
struct ServedWork {
  Seconds duration;
  double output_tokens = 0;
  Flops flops;                ///< those that the model needs for all answers
  std::vector<Seconds> held;  ///< time for which each instance was held
};

/// @param autoscaler of the service; null: all instances were there always
ServedWork served_work(const LlmConfig& model, const Service& service, const ServingLog& log,
                       const std::vector<Instance>& instances, const Autoscaler* autoscaler);

/// What share of the peak of the replicas, while they are held, the answers needed.
void report_serving_utilization(const ServingConfig& serving, const ServedWork& work,
                                RunRecord& record);

/// Energy of the accelerators: that of iterations above idle, and idling all the time; with what
/// systems draw beside them, where they tell.
/// @param instances in the order of the groups, which count while they are held
void report_serving_energy(const ServingConfig& serving, const ServingFleet& fleet,
                           const std::vector<Instance>& instances, const ServedWork& work,
                           RunRecord& record);

/// What a million tokens of answers cost, where all prices are known.
void report_serving_cost(const ServingConfig& serving, const ServedWork& work, RunRecord& record);

}  // namespace orrery
