// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/cache_parts.h"

#include <algorithm>
#include <cmath>

namespace orrery {
double crossing_rate(const AcceleratorConfig& a) {
  if (!a.cache || !a.cache->far_bandwidth || a.cache->partitions.value == 1) return INFINITY;
  return a.cache->far_bandwidth->value.base() / a.dies / kMicro / a.cache->far_share();
}

double memory_rate(const AcceleratorConfig& a) {
  return std::min(a.memory.bandwidth.value.base() / a.dies / kMicro, crossing_rate(a));
}

double cache_hit_rate(const AcceleratorConfig& a, double near) {
  return a.cache && a.cache->duplicated.value ? near : std::min(near, crossing_rate(a));
}

double far_wait_us(const AcceleratorConfig& a) {
  return a.cache ? a.cache->far_share() * a.cache->far_latency.value.base() * kMicro : 0;
}

double cache_copies(const AcceleratorConfig& a) { return a.cache ? a.cache->copies() : 1; }

}  // namespace orrery
