// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/host_device.h"

/// mbarrier, cluster and proxy instructions (PTX ISA, "Parallel Synchronization and Communication
/// Instructions"); addresses are 32-bit shared-memory addresses.
namespace orrery::measure {

#ifdef ORRERY_HOPPER

__device__ inline std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// The first multiple of `kAlignment` at or after dynamic shared memory, which may start anywhere
/// that is a multiple of 16.
template <int kAlignment>
__device__ inline std::uint8_t* align_shared(std::uint8_t* pointer) {
  const std::uint32_t past = shared_address(pointer) % kAlignment;
  return pointer + (past == 0 ? 0 : kAlignment - past);
}

__device__ inline void barrier_init(std::uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

/// Makes initialised barriers visible to the cluster and to the asynchronous proxy.
__device__ inline void barrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Orders ordinary writes to shared memory before reads by TMA and wgmma.
__device__ inline void async_proxy_fence() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ inline void barrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/// Arrives once and lets the phase wait for `bytes` that TMA will write.
__device__ inline void barrier_arrive_expect(std::uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

/// Arrives at the barrier of the same address in block `rank` of the cluster.
__device__ inline void barrier_arrive_remote(std::uint32_t barrier, int rank) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n"
      "}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

/// Waits until the phase of this parity has completed; a wait of seconds is a fault of the kernel
/// and traps, so that the launch fails instead of holding the GPU.
__device__ inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  constexpr long long kLongestClocks = 8'000'000'000;
  const long long start = clock64();
  std::uint32_t done = 0;
  do {
    asm volatile(
        "{\n"
        ".reg .pred complete;\n"
        "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 complete, [%1], %2;\n"
        "selp.b32 %0, 1, 0, complete;\n"
        "}\n"
        : "=r"(done)
        : "r"(barrier), "r"(parity)
        : "memory");
    if (done == 0 && clock64() - start > kLongestClocks) __trap();
  } while (done == 0);
}

__device__ inline int cluster_rank() {
  int rank = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

/// All threads of the cluster (of the block, where there is no cluster).
__device__ inline void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;\n" ::
          : "memory");
}

#endif

}  // namespace orrery::measure
