// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/roofline.h"

#include <algorithm>
#include <cmath>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

struct Terms {
  double matrix = 0, vector = 0, memory = 0, host = 0;  // seconds

  double largest() const { return std::max({matrix, vector, memory, host}); }
};

Terms roofline_terms(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  const KernelConfig& model = accelerator.kernel;
  const double dies = accelerator.dies;
  Terms terms;
  if (kernel.matrix_flops.base() > 0) {
    const Fact<double>* efficiency = find_precision(model.matrix_efficiency, kernel.precision);
    const FlopsPerSecond peak = matrix_peak(accelerator, kernel.precision);
    terms.matrix = (kernel.matrix_flops / (peak * (efficiency ? efficiency->value : 1.0))).base();
  }
  terms.vector = (kernel.vector_flops /
                  (accelerator.compute.vector.value * (model.vector_efficiency.value / dies)))
                     .base();
  terms.memory = ((kernel.read + kernel.written) /
                  (accelerator.memory.bandwidth.value * (model.memory_efficiency.value / dies)))
                     .base();
  if (kernel.host.base() > 0) {
    const BytesPerSecond link = accelerator.host_link.bandwidth.value;
    if (link.base() == 0)
      throw config::ConfigError(accelerator.name + ": host_link is not configured");
    terms.host = (kernel.host / (link / dies)).base();
  }
  return terms;
}

/// (a^p + b^p + ...)^(1/p), scaled by the largest term so that no power overflows or vanishes.
double p_norm(const Terms& terms, double p) {
  const double largest = terms.largest();
  if (largest == 0) return 0;
  double sum = 0;
  for (const double term : {terms.matrix, terms.vector, terms.memory, terms.host}) {
    sum += std::pow(term / largest, p);
  }
  return largest * std::pow(sum, 1 / p);
}

Bound bound_of(const Terms& terms, double body, double launch) {
  if (launch > body) return Bound::kLaunch;
  const double largest = terms.largest();
  if (terms.memory == largest) return Bound::kMemory;
  if (terms.host == largest) return Bound::kHostLink;
  return terms.matrix == largest ? Bound::kCompute : Bound::kVector;
}

}  // namespace

KernelCost RooflineModel::cost(const Kernel& kernel, const AcceleratorConfig& accelerator) const {
  const Terms terms = roofline_terms(kernel, accelerator);
  const double body = p_norm(terms, accelerator.kernel.exponent.value);
  const Seconds launch = accelerator.kernel.launch.value;
  KernelCost cost;
  cost.launch = to_picoseconds(launch);
  cost.duration = checked_add(cost.launch, to_picoseconds(Seconds(body)));
  cost.bound = bound_of(terms, body, launch.base());
  return cost;
}

}  // namespace orrery
