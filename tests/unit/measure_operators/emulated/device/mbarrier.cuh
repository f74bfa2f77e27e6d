// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "device/threads.h"

/// Stands in for validation/kernels/device/mbarrier.cuh: barriers that count arrivals and bytes as
/// the PTX ISA describes them.
namespace orrery::measure {

struct EmulatedBarriers {
  struct State {
    int arrivals = 0, pending = 0, bytes = 0;
    std::uint32_t phase = 0;
  };
  std::mutex mutex;
  std::map<std::uint32_t, State> states;

  void change(std::uint32_t barrier, int arrivals, int bytes) {
    const std::lock_guard lock(mutex);
    State& state = states.at(barrier);
    state.pending -= arrivals;
    state.bytes += bytes;
    if (state.pending < 0) throw std::logic_error("more arrivals than the barrier was made for");
    if (state.pending == 0 && state.bytes == 0) {
      state.pending = state.arrivals;
      state.phase ^= 1;
    }
  }
};
inline EmulatedBarriers emulated_barriers;

inline void barrier_init(std::uint32_t barrier, int arrivals) {
  const std::lock_guard lock(emulated_barriers.mutex);
  emulated_barriers.states[barrier] = {arrivals, arrivals, 0, 0};
}
inline void barrier_init_fence() {}
inline void barrier_arrive(std::uint32_t barrier) { emulated_barriers.change(barrier, 1, 0); }
inline void barrier_arrive_expect(std::uint32_t barrier, int bytes) {
  emulated_barriers.change(barrier, 1, bytes);
}
inline void barrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  for (;;) {
    {
      const std::lock_guard lock(emulated_barriers.mutex);
      if (emulated_barriers.states.at(barrier).phase != parity) return;
    }
    std::this_thread::yield();
  }
}

}  // namespace orrery::measure
