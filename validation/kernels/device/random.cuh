// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <algorithm>

#include "device/random.h"
#include "device/timing.cuh"

namespace orrery::measure {

/// Writes the bit pattern of `value` in `format` as element i.
__device__ inline void store_as(Format format, void* data, std::size_t i, float value) {
  switch (format) {
    case Format::kBf16:
      static_cast<std::uint16_t*>(data)[i] = encode_bf16(value);
      return;
    case Format::kE4m3:
      static_cast<std::uint8_t*>(data)[i] = encode_e4m3(value);
      return;
    default:
      static_cast<float*>(data)[i] = rounded_to(format, value);
  }
}

template <int kUnused = 0>  // a template: the header is in several translation units
__global__ void fill_kernel(Format format, void* data, std::size_t count, Data kind,
                            std::uint64_t seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    store_as(format, data, i, random_value(kind, seed, i));
  }
}

/// Fills `count` elements so that element i is stored_value(format, kind, seed, i); waits for it.
inline void fill(Format format, void* data, std::size_t count, std::uint64_t seed,
                 Data kind = Data::kRandom) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + 255) / 256, 8192));
  fill_kernel<><<<blocks, 256>>>(format, data, count, kind, seed);
  ORRERY_CUDA(cudaGetLastError());
  ORRERY_CUDA(cudaDeviceSynchronize());
}

}  // namespace orrery::measure
