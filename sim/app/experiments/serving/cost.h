// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/app/experiments/serving/fleet.h"
#include "sim/app/experiments/serving/servers.h"
#include "sim/results/run_record.h"
#include "sim/serving/service.h"
#include "sim/serving/steady_window.h"

namespace orrery {

/// The resources that a run, or its steady window, takes of the fleet, and the tokens it gives.
struct ServedWork {
  Seconds duration;
  double output_tokens = 0;
  std::vector<double> energy;  ///< joules above idle of the devices of each instance
  Flops flops;                 ///< those that the model needs for all answers
  std::vector<Seconds> held;   ///< time for which each instance was held
  std::vector<HeldAccelerators> accelerators;  ///< accelerators of each group while they are held
};

/// The work of the whole run.
/// @param autoscaler of the service; null: all instances were there always
ServedWork served_work(const ServingConfig& serving, const LlmConfig& model, const Service& service,
                       const ServingLog& log, const std::vector<Instance>& instances,
                       const Autoscaler* autoscaler);

/// The work of the steady window, without FLOPs. @param window must not be empty
ServedWork steady_work(const ServingConfig& serving, const SteadyWindow& window,
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
/// @param per_token the part of the run that figures per token are of
void report_serving_energy(const ServingConfig& serving, const ServingFleet& fleet,
                           const ServedWork& work, const ServedWork& per_token, RunRecord& record);

/// Price of the accelerators that are charged, and of a million output tokens, if all prices are
/// known.
/// @param per_token the part of the run that figures per token are of
void report_serving_cost(const ServingConfig& serving, const ServedWork& work,
                         const ServedWork& per_token, RunRecord& record);

/// The same figures of the steady window, as metrics `steady_*`.
void report_steady_cost(const ServingConfig& serving, const ServingFleet& fleet,
                        const ServedWork& steady, RunRecord& record);

}  // namespace orrery
