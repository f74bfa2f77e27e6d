// SPDX-License-Identifier: Apache-2.0
#include "device/words.cuh"

#include <algorithm>

namespace orrery::measure {
namespace {

__global__ void fill_words_kernel(std::uint32_t* words, std::size_t count, std::uint64_t seed) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    words[i] = random_word(seed, i);
  }
}

}  // namespace

void fill_words(std::uint32_t* words, std::size_t count, std::uint64_t seed) {
  if (count == 0) return;
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + 255) / 256, 8192));
  fill_words_kernel<<<blocks, 256>>>(words, count, seed);
  ORRERY_CUDA(cudaGetLastError());
  ORRERY_CUDA(cudaDeviceSynchronize());
}

std::vector<std::uint32_t> copy_words(const std::uint32_t* words, std::size_t count) {
  std::vector<std::uint32_t> copy(count);
  ORRERY_CUDA(
      cudaMemcpy(copy.data(), words, count * sizeof(std::uint32_t), cudaMemcpyDeviceToHost));
  return copy;
}

}  // namespace orrery::measure
