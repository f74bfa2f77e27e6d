// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/workers/memory_admission.h"

#include <algorithm>

namespace orrery {
namespace {

/// Points whose memory is remembered: a large one long ago does not hold up small ones for ever.
constexpr std::size_t kRemembered = 256;
/// What is available changes no faster than points fill memory.
constexpr std::chrono::milliseconds kMemoryEvery{20};
/// So long the first point runs alone, until it has shown what it takes.
constexpr std::chrono::milliseconds kAlone{100};

}  // namespace

void MemoryAdmission::add(std::int64_t bytes) {
  taken_.push_back(std::max<std::int64_t>(0, bytes));
  if (taken_.size() > kRemembered) taken_.pop_front();
  seen_ = 0;
}

bool MemoryAdmission::admits(const std::vector<std::int64_t>& running, std::int64_t limit,
                             std::chrono::nanoseconds alone) {
  if (running.empty()) return true;  // or nothing would ever run
  if (taken_.empty() && limit == 0 && alone < kAlone) return false;
  std::int64_t expected = taken_.empty() ? limit : 0;
  for (const std::int64_t bytes : taken_) expected = std::max(expected, bytes);
  for (const std::int64_t bytes : running) seen_ = std::max(seen_, bytes);
  expected = std::max(expected, seen_);
  if (const auto now = Clock::now(); now - looked_ > kMemoryEvery) {
    left_ = available_();
    looked_ = now;
  }
  std::int64_t left = left_;
  for (const std::int64_t bytes : running) left -= expected - std::max<std::int64_t>(0, bytes);
  return left >= expected;
}

}  // namespace orrery
