// SPDX-License-Identifier: Apache-2.0
#include "sim/app/limits.h"

#include <algorithm>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

constexpr Bound kRates[] = {Bound::kTensor, Bound::kVector, Bound::kCache,
                            Bound::kMemory, Bound::kHost,   Bound::kEngine};

/// 0 where the kernel does not use it, or the device has none.
double time_at_rate(const Kernel& kernel, const AcceleratorConfig& a, Bound bound) {
  const double dies = a.dies;
  const Bytes bytes = kernel.read + kernel.written;
  switch (bound) {
    case Bound::kTensor:
      if (kernel.matrix_flops.base() == 0) return 0;
      return (kernel.matrix_flops / matrix_peak(a, kernel)).base();
    case Bound::kVector:
      return (kernel.vector_flops / (a.compute.vector.value / dies)).base();
    case Bound::kCache:
      return a.cache ? (bytes / (a.cache->bandwidth.value / dies)).base() : 0;
    case Bound::kMemory:
      return (bytes / (a.memory.bandwidth.value / dies)).base();
    case Bound::kHost:
      if (kernel.host.base() == 0) return 0;
      return (kernel.host / (a.host_link.bandwidth.published() / dies)).base();
    case Bound::kEngine:
      return engine_time(kernel, a).base();
    case Bound::kLatency:
      break;
  }
  return 0;
}

}  // namespace

double time_at_limit(const Kernel& kernel, const AcceleratorConfig& accelerator, Bound bound) {
  if (bound != Bound::kLatency) return time_at_rate(kernel, accelerator, bound);
  double slowest = 0;
  for (const Bound rate : kRates)
    slowest = std::max(slowest, time_at_rate(kernel, accelerator, rate));
  return slowest;
}

}  // namespace orrery
