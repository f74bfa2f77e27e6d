// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "device/timing.cuh"

namespace orrery::measure {

/// A grid of thread blocks, in clusters where `cluster` is above 1 (compute capability 9).
struct ClusterGrid {
  std::int64_t grid = 1;
  int cluster = 1;  ///< divides the grid
  int threads = 128;
  std::size_t shared_bytes = 0;

  cudaLaunchConfig_t config(cudaStream_t stream, cudaLaunchAttribute& attribute) const {
    attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = static_cast<unsigned>(cluster);
    attribute.val.clusterDim.y = 1;
    attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t result{};
    result.gridDim = dim3(static_cast<unsigned>(grid));
    result.blockDim = dim3(static_cast<unsigned>(threads));
    result.dynamicSmemBytes = shared_bytes;
    result.stream = stream;
    result.attrs = &attribute;
    result.numAttrs = cluster > 1 ? 1 : 0;
    return result;
  }
};

/// Lets the kernel take all the shared memory of the device, and clusters of 16.
template <class Kernel>
void allow_all(Kernel* kernel, const DeviceInfo& device) {
  cudaFuncAttributes own{};
  ORRERY_CUDA(cudaFuncGetAttributes(&own, kernel));
  const auto most = device.shared_bytes_per_block - static_cast<std::int64_t>(own.sharedSizeBytes);
  ORRERY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(most)));
  ORRERY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                   cudaSharedmemCarveoutMaxShared));
  if (device.at_least(9)) {
    ORRERY_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  }
}

template <class... Parameters, class... Arguments>
void launch_grid(const ClusterGrid& grid, cudaStream_t stream, void (*kernel)(Parameters...),
                 Arguments... arguments) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = grid.config(stream, attribute);
  ORRERY_CUDA(cudaLaunchKernelEx(&config, kernel, arguments...));
}

/// Clusters of the grid's shape that the chip holds at once; 0 when the driver refuses them.
template <class Kernel>
std::int64_t most_clusters(const ClusterGrid& grid, Kernel* kernel) {
  cudaLaunchAttribute attribute;
  const cudaLaunchConfig_t config = grid.config(nullptr, attribute);
  int clusters = 0;
  if (cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) != cudaSuccess) {
    cudaGetLastError();  // clears the error: a refusal is an answer
    return 0;
  }
  return clusters;
}

}  // namespace orrery::measure
