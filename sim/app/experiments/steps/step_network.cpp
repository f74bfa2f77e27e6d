// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/steps/step_network.h"

namespace orrery {

StepNetwork::StepNetwork(const StepExperiment& experiment)
    : links_(experiment.machine(), experiment.faults, {experiment.algorithms}) {
  const Machine& machine = experiment.machine();
  if (const auto own = experiment.own_all_reduces())
    engine_.emplace(machine.system(), machine.nodes(), *own, links_.faults_at_start(),
                    experiment.algorithms);
}

}  // namespace orrery
