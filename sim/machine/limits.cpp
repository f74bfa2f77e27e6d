// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/limits.h"

#include <algorithm>
#include <array>

#include "sim/machine/kernel_model.h"

namespace orrery {
namespace {

/// Share of its time that a rate which bounds a kernel takes at least. Priors of achievable shares
/// of a peak start at 0.4.
constexpr double kLowest = 0.25;

/// A rate and the seconds that a kernel takes at it.
struct AtRate {
  Bound bound;
  Seconds time;
};

/// Bytes through the L2 and the memory of one rank, at least or as estimated.
struct Moved {
  Bytes cache, memory;
};

BytesPerSecond memory_bandwidth(const AcceleratorConfig& a) {
  return a.memory.bandwidth.value / static_cast<double>(a.dies);
}

BytesPerSecond cache_bandwidth(const AcceleratorConfig& a) {
  return a.cache ? a.cache->bandwidth.value / static_cast<double>(a.dies) : BytesPerSecond();
}

Bytes through_units(const Kernel& kernel) { return kernel.read + kernel.written; }

/// Weights, and cached tokens of new ones, which a step touches once.
Bytes touched_once(const Kernel& kernel) {
  if (kernel.kind == KernelClass::kAttentionDecode) return kernel.read;
  const bool weights = kernel.kind == KernelClass::kGroupedGemm ||
                       (kernel.kind == KernelClass::kGemm && kernel.batch == 1);
  if (!weights) return {};
  const double elements = static_cast<double>(kernel.batch) * static_cast<double>(kernel.k) *
                          static_cast<double>(kernel.n);
  return std::min(kernel.read, Bytes(elements * weight_bytes(kernel.precision, kernel.weights)));
}

/// Between two times that a kernel reads its weights, a rank touches `reuse`; whatever a cache
/// replaces, it has kept at most its capacity of that.
Moved least_moved(const Kernel& kernel, const AcceleratorConfig& a) {
  const Bytes held = a.cache ? a.cache->capacity.value / static_cast<double>(a.dies) : Bytes();
  const Bytes bytes = through_units(kernel);
  const double missed = kernel.reuse > held ? 1 - held / kernel.reuse : 0;
  return {bytes, std::max({Bytes(), bytes - held, touched_once(kernel) * missed})};
}

Seconds arithmetic(const Kernel& kernel, const AcceleratorConfig& a) {
  const double dies = a.dies;
  Seconds time = kernel.vector_flops / (a.compute.vector.value / dies);
  if (a.compute.special)
    time = std::max(time, kernel.exponentials / (a.compute.special->value / dies));
  return time;
}

std::array<AtRate, 6> rates(const Kernel& kernel, Moved moved, const AcceleratorConfig& a) {
  const double dies = a.dies;
  Seconds tensor, host, cache;
  if (kernel.matrix_flops.base() > 0) tensor = kernel.matrix_flops / matrix_peak(a, kernel);
  if (kernel.host.base() > 0) host = kernel.host / (a.host_link.bandwidth.published() / dies);
  // Copies of engines do not pass the units' L2.
  if (a.cache && kernel.kind != KernelClass::kCopy) cache = moved.cache / cache_bandwidth(a);
  return {{{Bound::kTensor, tensor},
           {Bound::kVector, arithmetic(kernel, a)},
           {Bound::kCache, cache},
           {Bound::kMemory, moved.memory / memory_bandwidth(a)},
           {Bound::kHost, host},
           {Bound::kEngine, engine_time(kernel, a)}}};
}

}  // namespace

Seconds least_time(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  Seconds least;
  for (const AtRate& rate : rates(kernel, least_moved(kernel, accelerator), accelerator))
    least = std::max(least, rate.time);
  return least;
}

Seconds time_at_rate(const Kernel& kernel, const AcceleratorConfig& accelerator, Bound rate) {
  for (const AtRate& known : rates(kernel, least_moved(kernel, accelerator), accelerator))
    if (known.bound == rate) return known.time;
  return {};
}

Bytes least_from_memory(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  return least_moved(kernel, accelerator).memory;
}

Limit limit_of(const Kernel& kernel, const KernelCost& cost, const AcceleratorConfig& accelerator) {
  const Seconds time = to_seconds(cost.duration);
  const Moved least = least_moved(kernel, accelerator);
  Moved moved;
  moved.memory = std::max(least.memory, std::min(cost.memory.value_or(through_units(kernel)),
                                                 memory_bandwidth(accelerator) * time));
  moved.cache = std::max(least.cache, std::min(cost.cache, cache_bandwidth(accelerator) * time));
  Limit limit;
  for (const AtRate& rate : rates(kernel, moved, accelerator))
    if (rate.time > limit.time) limit = {rate.bound, rate.time};
  const bool launching = cost.launch > cost.duration - cost.launch;
  if (launching || limit.time < time * kLowest) limit.bound = Bound::kLatency;
  return limit;
}

}  // namespace orrery
