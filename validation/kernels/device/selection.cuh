// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "device/lanes.cuh"

/// The largest of a row of scores, in no order: a thread block a row counts the leading digits of
/// all scores, then takes what is above the digit where the wanted number is reached; those with
/// that digit wait in shared memory for two more digits (radix selection; Alabi et al., "Fast
/// k-selection algorithms for graphics processing units", ACM JEA 17, 2012).
namespace orrery::measure {

constexpr int kDigits = 2048;   ///< values of a digit of 11 bits; the last of three has 10
constexpr int kWaiting = 4096;  ///< scores that fit into shared memory
constexpr int kLevels = 3;
constexpr int kSelectionThreads = 512;

/// Unsigned numbers in the order of the scores.
__device__ inline std::uint32_t ordered_bits(std::uint32_t bits) {
  return bits ^ ((bits & 0x80000000u) != 0 ? 0xFFFFFFFFu : 0x80000000u);
}
__device__ inline int digit_of(std::uint32_t key, int level) {
  return static_cast<int>(level == 0 ? key >> 21 : level == 1 ? key >> 10 & 0x7FFu : key & 0x3FFu);
}
/// The digits in front of those of `level`; all of them behind the last one.
__device__ inline std::uint32_t prefix_of(std::uint32_t key, int level) {
  return level == 0 ? 0 : level == 1 ? key >> 21 : level == 2 ? key >> 10 : key;
}

struct SelectionOperands {
  const float* scores = nullptr;   ///< [rows][count], count a multiple of 4
  std::int32_t* chosen = nullptr;  ///< [rows][wanted]: places in the row
  int count = 0, wanted = 0;
};

template <int kThreads>
struct SelectionShared {
  int counts[kDigits];
  int warp_totals[kThreads / 32];
  int digit, above, inside;  ///< where the wanted number is reached; scores above it, and with it
  int written, waiting, ties;
  std::uint32_t keys[kWaiting];
  std::int32_t places[kWaiting];
};

/// One block's work on one row.
template <int kThreads>
struct RowSelection {
  SelectionOperands o;
  SelectionShared<kThreads>* shared;
  const float* row;
  std::int32_t* chosen;

  /// visit(key, place) of every score of the row.
  template <class Visit>
  __device__ void each_of_row(const Visit& visit) const {
    for (int i = 4 * static_cast<int>(threadIdx.x); i < o.count; i += 4 * kThreads) {
      const Words4 words = load_words4(row + i);
#pragma unroll
      for (int k = 0; k < 4; ++k) visit(ordered_bits(words.w[k]), i + k);
    }
  }
  /// visit() of the scores that may still be chosen: from shared memory where they fit into it.
  template <class Visit>
  __device__ void each_candidate(int candidates, std::uint32_t prefix, int level,
                                 const Visit& visit) const {
    const auto visit_alike = [&](std::uint32_t key, std::int32_t place) {
      if (prefix_of(key, level) == prefix) visit(key, place);
    };
    if (candidates > kWaiting) {
      each_of_row(visit_alike);
      return;
    }
    for (int i = static_cast<int>(threadIdx.x); i < candidates; i += kThreads)
      visit_alike(shared->keys[i], shared->places[i]);
  }

  __device__ void clear_counts() const {
    for (int i = static_cast<int>(threadIdx.x); i < kDigits; i += kThreads) shared->counts[i] = 0;
    __syncthreads();
  }
  __device__ void choose(std::int32_t place) const {
    chosen[add_shared(&shared->written, 1)] = place;
  }

  /// Finds the digit at which, from the largest on, `wanted` scores are reached. A thread adds up
  /// neighbouring digits, warps and the block what their threads have.
  __device__ void locate(int wanted) const {
    constexpr int kOwn = kDigits / kThreads;
    const int t = static_cast<int>(threadIdx.x), largest = kDigits - 1 - t * kOwn;
    int own = 0;
    for (int i = 0; i < kOwn; ++i) own += shared->counts[largest - i];
    int sum = own;
    for (int distance = 1; distance < 32; distance *= 2) {
      const int before = lane_before(sum, distance);
      if (t % 32 >= distance) sum += before;
    }
    if (t % 32 == 31) shared->warp_totals[t / 32] = sum;
    __syncthreads();
    int above = sum - own;
    for (int warp = 0; warp < t / 32; ++warp) above += shared->warp_totals[warp];
    if (above < wanted && wanted <= above + own) {
      int digit = largest;
      while (above + shared->counts[digit] < wanted) above += shared->counts[digit--];
      shared->digit = digit;
      shared->above = above;
      shared->inside = shared->counts[digit];
    }
    __syncthreads();
  }

  /// Reads the row twice; what may still be chosen waits in shared memory, as far as it fits.
  __device__ void first_digit() const {
    each_of_row([&](std::uint32_t key, int) { add_shared(&shared->counts[digit_of(key, 0)], 1); });
    __syncthreads();
    locate(o.wanted);
    const int digit = shared->digit;
    const bool fits = shared->inside <= kWaiting;
    each_of_row([&](std::uint32_t key, int place) {
      const int own = digit_of(key, 0);
      if (own > digit) choose(place);
      if (own != digit || !fits) return;
      const int slot = add_shared(&shared->waiting, 1);
      shared->keys[slot] = key;
      shared->places[slot] = place;
    });
    __syncthreads();
  }

  __device__ void run() const {
    if (threadIdx.x == 0) shared->written = shared->waiting = shared->ties = 0;
    clear_counts();
    first_digit();
    const int candidates = shared->inside;
    int wanted = o.wanted - shared->above;
    auto prefix = static_cast<std::uint32_t>(shared->digit);
    for (int level = 1; level < kLevels; ++level) {
      clear_counts();
      each_candidate(candidates, prefix, level, [&](std::uint32_t key, std::int32_t) {
        add_shared(&shared->counts[digit_of(key, level)], 1);
      });
      __syncthreads();
      locate(wanted);
      const int digit = shared->digit;
      each_candidate(candidates, prefix, level, [&](std::uint32_t key, std::int32_t place) {
        if (digit_of(key, level) > digit) choose(place);
      });
      wanted -= shared->above;
      prefix = prefix << (level == 1 ? 11 : 10) | static_cast<std::uint32_t>(digit);
      __syncthreads();
    }
    // Scores that are equal to the last digit: as many as are still wanted.
    each_candidate(candidates, prefix, kLevels, [&](std::uint32_t, std::int32_t place) {
      if (add_shared(&shared->ties, 1) < wanted) choose(place);
    });
  }
};

template <int kThreads>
__global__ void __launch_bounds__(kThreads) selection_kernel(const SelectionOperands o) {
  __shared__ SelectionShared<kThreads> shared;
  RowSelection<kThreads>{o, &shared, o.scores + std::int64_t{blockIdx.x} * o.count,
                         o.chosen + std::int64_t{blockIdx.x} * o.wanted}
      .run();
}

}  // namespace orrery::measure
