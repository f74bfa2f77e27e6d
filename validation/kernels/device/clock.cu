// SPDX-License-Identifier: Apache-2.0
#include "device/clock.cuh"

#include "device/timing.cuh"

namespace orrery::measure {
namespace {

__global__ void spin_kernel(std::uint64_t cycles) { spin(cycles); }

}  // namespace

void keep_busy(const DeviceInfo& device, double seconds) {
  spin_kernel<<<static_cast<unsigned>(device.sms), 128>>>(
      static_cast<std::uint64_t>(seconds * device.max_clock_hz));
  ORRERY_CUDA(cudaGetLastError());
  ORRERY_CUDA(cudaDeviceSynchronize());
}

}  // namespace orrery::measure
