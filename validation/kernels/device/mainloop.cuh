// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/mbarrier.cuh"
#include "device/mma.cuh"
#include "device/swizzle.h"
#include "device/tma.cuh"
#include "device/wgmma.cuh"

/// The fused main loop of a Hopper GEMM: one thread loads tiles by TMA into a ring of stages, one
/// or two warpgroups multiply them by wgmma, mbarriers in between (the warp-specialised pipeline
/// that CUTLASS 3 introduced; this one is of our own and does one tile a block).
namespace orrery::measure {

constexpr int kMainloopK = kTileRowBytes / 2;  // bf16 elements of a k-step
constexpr int kMainloopStages = 8;

/// out[m,n] = a[m,k] b[n,k]^T by blocks of (64 kWarpgroups) x kBn, one tile for each block.
struct MainloopShape {
  int k_steps = 0;
  int stages = 0;   ///< at least 2: a slot is released one step late
  int tiles_n = 0;  ///< block i computes tile (i / tiles_n, i % tiles_n)
};

ORRERY_HD constexpr int stage_bytes(int bm, int bn) { return (bm + bn) * kTileRowBytes; }

#ifdef ORRERY_HOPPER
struct MainloopRing {
  std::uint32_t tiles, full, empty;  ///< shared-memory addresses of the first

  __device__ std::uint32_t tile_of(int slot, int bytes) const {
    return tiles + static_cast<std::uint32_t>(slot * bytes);
  }
  __device__ std::uint32_t full_of(int slot) const {
    return full + 8 * static_cast<std::uint32_t>(slot);
  }
  __device__ std::uint32_t empty_of(int slot) const {
    return empty + 8 * static_cast<std::uint32_t>(slot);
  }
};

/// One thread keeps the stages filled.
template <int kBm, int kBn>
__device__ void produce(const CUtensorMap& map_a, const CUtensorMap& map_b,
                        const MainloopShape& shape, const MainloopRing& ring) {
  const int row_a = static_cast<int>(blockIdx.x) / shape.tiles_n * kBm;
  const int row_b = static_cast<int>(blockIdx.x) % shape.tiles_n * kBn;
  for (int step = 0; step < shape.k_steps; ++step) {
    const int slot = step % shape.stages, use = step / shape.stages;
    if (use > 0) barrier_wait(ring.empty_of(slot), phase_parity(use - 1));
    const std::uint32_t full = ring.full_of(slot);
    const std::uint32_t a = ring.tile_of(slot, stage_bytes(kBm, kBn));
    barrier_arrive_expect(full, stage_bytes(kBm, kBn));
    tma_load(a, map_a, step * kMainloopK, row_a, full);
    tma_load(a + kBm * kTileRowBytes, map_b, step * kMainloopK, row_b, full);
  }
}

/// A warpgroup multiplies its 64 rows; a slot is released when the wgmma of the step after it have
/// been issued and its own are complete, so that the tensor cores never wait for the release.
template <int kBm, int kBn>
__device__ void consume(const MainloopShape& shape, const MainloopRing& ring,
                        float (&sums)[kBn / 2]) {
  const auto group = static_cast<std::uint32_t>(threadIdx.x / 128);
  const bool releases = threadIdx.x % 32 == 0;
  for (int step = 0; step < shape.k_steps; ++step) {
    const int slot = step % shape.stages;
    barrier_wait(ring.full_of(slot), phase_parity(step / shape.stages));
    const std::uint32_t tile = ring.tile_of(slot, stage_bytes(kBm, kBn));
    const std::uint64_t a = matrix_descriptor(tile + group * 64 * kTileRowBytes);
    const std::uint64_t b = matrix_descriptor(tile + kBm * kTileRowBytes);
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < kStepsPerTile; ++i) {
      Wgmma<Format::kBf16, kBn>::ss(sums, descriptor_of_step(a, i), descriptor_of_step(b, i));
    }
    wgmma_commit();
    wgmma_wait<1>();
    if (releases && step > 0) barrier_arrive(ring.empty_of((step - 1) % shape.stages));
  }
  wgmma_wait<0>();
}

/// Straight from registers, 4 bytes a thread: the plainest epilogue.
template <int kBm, int kBn>
__device__ void store_tile(const MainloopShape& shape, const float (&sums)[kBn / 2],
                           std::uint16_t* out) {
  const int thread = static_cast<int>(threadIdx.x) % 128;
  const int group = static_cast<int>(threadIdx.x) / 128;
  const int first_row = static_cast<int>(blockIdx.x) / shape.tiles_n * kBm + group * 64;
  const int first_column = static_cast<int>(blockIdx.x) % shape.tiles_n * kBn;
#pragma unroll
  for (int i = 0; i < kBn / 2; i += 2) {
    const std::int64_t row = first_row + accumulator_row(thread, i);
    const int column = first_column + accumulator_column(thread, i);
    *reinterpret_cast<std::uint32_t*>(out + row * shape.tiles_n * kBn + column) =
        pack_bf16(sums[i], sums[i + 1]);
  }
}

/// What a block of 128 kWarpgroups + 32 threads does; `shared`: aligned to the swizzle's period.
template <int kWarpgroups, int kBn>
__device__ void mainloop_block(const CUtensorMap& map_a, const CUtensorMap& map_b,
                               const MainloopShape& shape, std::uint16_t* out,
                               std::uint32_t shared) {
  constexpr int kBm = 64 * kWarpgroups;
  const std::uint32_t barriers =
      shared + static_cast<std::uint32_t>(shape.stages * stage_bytes(kBm, kBn));
  const MainloopRing ring{shared, barriers, barriers + 8 * kMainloopStages};
  if (threadIdx.x == 0) {
    for (int slot = 0; slot < shape.stages; ++slot) {
      barrier_init(ring.full_of(slot), 1);
      barrier_init(ring.empty_of(slot), 4 * kWarpgroups);  // one arrival of every warp
    }
    barrier_init_fence();
  }
  __syncthreads();
  if (threadIdx.x >= 128 * kWarpgroups) {
    if (threadIdx.x == 128 * kWarpgroups) produce<kBm, kBn>(map_a, map_b, shape, ring);
    return;
  }
  float sums[kBn / 2];
#pragma unroll
  for (int i = 0; i < kBn / 2; ++i) sums[i] = 0;
  consume<kBm, kBn>(shape, ring, sums);
  store_tile<kBm, kBn>(shape, sums, out);
}

#endif

}  // namespace orrery::measure
