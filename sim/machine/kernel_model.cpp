// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/kernel_model.h"

#include "sim/config/diagnostics.h"

namespace orrery {

FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, Precision precision) {
  if (const auto* peak = find_precision(accelerator.compute.matrix, precision)) {
    return peak->value / accelerator.dies;
  }
  std::string known;
  for (const auto& [name, rate] : accelerator.compute.matrix) {
    known += (known.empty() ? "" : ", ") + std::string(to_string(name));
  }
  throw config::ConfigError("precision: " + accelerator.name + " has no matrix rate for '" +
                            to_string(precision) + "'; it has " + known);
}

FlopsPerSecond matrix_peak(const AcceleratorConfig& accelerator, const Kernel& kernel) {
  const FlopsPerSecond dense = matrix_peak(accelerator, kernel.precision);
  return kernel.weights.sparse ? dense * accelerator.compute.structured_sparsity.value : dense;
}

}  // namespace orrery
