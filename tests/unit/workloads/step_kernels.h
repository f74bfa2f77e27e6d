// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <stdexcept>
#include <string>

#include "workloads/ops/step_list.h"

namespace orrery::test {

/// The kernel of the first step of that name. @throws std::logic_error where there is none
inline const Kernel& kernel(const StepList& list, const std::string& name) {
  const auto& steps = list.steps();
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.name() == name; });
  if (found == steps.end()) throw std::logic_error("no step '" + name + "'");
  return *found->kernel();
}

}  // namespace orrery::test
