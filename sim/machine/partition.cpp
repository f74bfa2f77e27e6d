// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/partition.h"

#include <cmath>
#include <memory>
#include <utility>

namespace orrery {
namespace {

template <class T>
void scale(Fact<T>& fact, double share) {
  fact.value = fact.value * share;
  if (fact.nameplate) fact.nameplate = *fact.nameplate * share;
}

void scale(Fact<int>& fact, double share) {
  fact.value = static_cast<int>(std::lround(fact.value * share));
}

template <class T>
void scale(std::optional<Fact<T>>& fact, double share) {
  if (fact) scale(*fact, share);
}

void scale(MemoryConfig& memory, double share) {
  scale(memory.capacity, share);
  scale(memory.bandwidth, share);
  scale(memory.bus_width, share);
  if (!memory.sold) return;
  MemoryConfig before = *memory.sold;
  scale(before, share);
  memory.sold = std::make_shared<MemoryConfig>(std::move(before));
}

}  // namespace

void take_part(AcceleratorConfig& device) {
  if (!device.partition) return;
  const double memory = device.partition->memory_share();
  const double units =
      static_cast<double>(device.partition->units.value) / device.compute.units.value;
  device.compute.units = device.partition->units;
  for (auto& [precision, rate] : device.compute.matrix) scale(rate, units);
  for (auto& [precision, rate] : device.compute.matrix_inference) scale(rate, units);
  scale(device.compute.vector, units);
  scale(device.compute.special, units);
  scale(device.power.tdp, units);
  scale(device.power.limit, units);
  scale(device.power.idle, units);
  scale(device.power.active, units);
  scale(device.memory, memory);
  if (device.cache) {
    scale(device.cache->capacity, memory);
    scale(device.cache->bandwidth, memory);
    scale(device.cache->far_bandwidth, memory);
  }
  if (device.copy_engines) scale(device.copy_engines->bandwidth, memory);
  scale(device.host_link.bandwidth, memory);
  scale(device.scale_out.bandwidth, memory);
  if (units < 1 || memory < 1) device.scale_up = {};
  if (!device.sold) return;
  AcceleratorConfig before = *device.sold;
  take_part(before);
  device.sold = std::make_shared<AcceleratorConfig>(std::move(before));
}

}  // namespace orrery
