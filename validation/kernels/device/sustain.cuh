// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <functional>

#include "device/timing.cuh"

namespace orrery::measure {

inline constexpr double kSustainPeriod_s = 0.02;  ///< length of one burst of launches

/// Launches that fill `seconds` at `one_us` each; at least one.
int launches_for(double seconds, double one_us);

/// Launches one after another on the legacy stream, between two events.
class Burst {
 public:
  Burst();
  ~Burst();
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;

  void enqueue(const Launch& launch, int count);
  /// Waits for the burst. @returns microseconds of one launch
  double finish();

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  int count_ = 0;
};

/// Receives the end of a burst in seconds since the first, and microseconds of one of its launches.
using BurstSeen = std::function<void(double time_s, double one_us)>;

/// Runs `launch` without a pause for `seconds`, or until the measurement's deadline, in bursts of
/// kSustainPeriod_s. `seen` is called after each burst while the next one runs, so a state that it
/// reads is that of a busy device.
/// @param one_us first estimate of the time of one launch; measured bursts replace it
void sustain(const Context& context, const Launch& launch, double seconds, double one_us,
             const BurstSeen& seen);

}  // namespace orrery::measure
