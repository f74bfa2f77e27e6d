// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/serving/fleet.h"
#include "sim/app/experiments/serving/servers.h"
#include "sim/results/run_record.h"
#include "sim/serving/service.h"

namespace orrery {

/// What a run took of the fleet beside time, and what it gave for it.
struct ServedWork {
  Seconds duration;
  double output_tokens = 0;
  Flops flops;                                 ///< those that the model needs for all answers
  std::vector<Seconds> held;                   ///< time for which each instance was held
  std::vector<HeldAccelerators> accelerators;  ///< accelerators of each group while they are held
};

/// @param autoscaler of the service; null: all instances were there always
ServedWork served_work(const ServingConfig& serving, const LlmConfig& model, const Service& service,
                       const ServingLog& log, const Autoscaler* autoscaler);

/// What share of the peak of the replicas, while they are held, the answers needed.
void report_serving_utilization(const ServingConfig& serving, const ServedWork& work,
                                RunRecord& record);

/// Replicas that are held and systems that are charged, on average.
void report_serving_servers(const ServingConfig& serving, const ServedWork& work,
                            RunRecord& record);

/// Energy of accelerators of replicas: idle power while a replica is held, and the energy of its
/// iterations above that. Energy of systems adds unused accelerators that are charged, at idle
/// power, and the host power of all that are charged, if every system has an `all_in_power`.
/// @param instances in the order of the groups
void report_serving_energy(const ServingConfig& serving, const ServingFleet& fleet,
                           const std::vector<Instance>& instances, const ServedWork& work,
                           RunRecord& record);

/// Price of the accelerators that are charged, and of a million output tokens, if all prices are
/// known.
void report_serving_cost(const ServingConfig& serving, const ServedWork& work, RunRecord& record);

}  // namespace orrery
