// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "host/measurement.h"

namespace orrery::measure {

/// Cycles of this multiprocessor's clock. Ordered with the memory accesses around it.
__device__ inline std::uint64_t cycles_now() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(value)::"memory");
  return value;
}

/// Nanoseconds of the clock that all multiprocessors share; it ticks every 32 ns (Hopper) to about
/// 1 us (Ampere).
__device__ inline std::uint64_t nanoseconds_now() {
  std::uint64_t value;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(value)::"memory");
  return value;
}

/// The multiprocessor that runs this thread block.
__device__ inline std::uint32_t multiprocessor() {
  std::uint32_t value;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(value));
  return value;
}

/// Does nothing for so many cycles.
__device__ inline void spin(std::uint64_t cycles) {
  const std::uint64_t start = cycles_now();
  while (cycles_now() - start < cycles) {
  }
}

/// Keeps every multiprocessor busy for about `seconds`, so that what is timed inside a kernel next
/// finds the clock raised.
void keep_busy(const DeviceInfo& device, double seconds);

}  // namespace orrery::measure
