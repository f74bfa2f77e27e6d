// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <thread>
#include <vector>

/// Threads of the host as the threads of a block; the headers beside this one give them the
/// instructions. A shared-memory address is an offset into `shared`.
#define __device__
#define ORRERY_HOPPER 1

namespace orrery::measure {

struct Index {
  unsigned x = 0;
};
inline thread_local Index threadIdx, blockIdx;

struct EmulatedBlock {
  std::vector<std::uint8_t> shared;
  std::barrier<> threads;

  std::deque<std::barrier<>> warps;  ///< barriers of 32 threads each

  EmulatedBlock(std::size_t bytes, int count) : shared(bytes), threads(count), count_(count) {
    for (int warp = 0; warp < count / 32; ++warp) warps.emplace_back(32);
  }

  /// Runs `work` on every thread of block `block` at once.
  void run(unsigned block, const std::function<void()>& work);

 private:
  int count_;
};

inline thread_local EmulatedBlock* block_of_thread = nullptr;

inline void EmulatedBlock::run(unsigned block, const std::function<void()>& work) {
  std::vector<std::thread> running;
  for (unsigned i = 0; i < static_cast<unsigned>(count_); ++i) {
    running.emplace_back([this, i, block, &work] {
      threadIdx.x = i;
      blockIdx.x = block;
      block_of_thread = this;
      work();
    });
  }
  for (std::thread& thread : running) thread.join();
}

inline void __syncthreads() { block_of_thread->threads.arrive_and_wait(); }

}  // namespace orrery::measure
