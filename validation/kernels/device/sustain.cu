// SPDX-License-Identifier: Apache-2.0
#include "device/sustain.cuh"

#include <algorithm>
#include <chrono>

namespace orrery::measure {

int launches_for(double seconds, double one_us) {
  return std::max(1, static_cast<int>(seconds / (1e-6 * one_us) + 0.5));
}

Burst::Burst() {
  ORRERY_CUDA(cudaEventCreate(&start_));
  ORRERY_CUDA(cudaEventCreate(&stop_));
}

Burst::~Burst() {
  cudaEventDestroy(start_);
  cudaEventDestroy(stop_);
}

void Burst::enqueue(const Launch& launch, int count) {
  count_ = count;
  ORRERY_CUDA(cudaEventRecord(start_, nullptr));
  for (int i = 0; i < count; ++i) launch(nullptr, i);
  ORRERY_CUDA(cudaEventRecord(stop_, nullptr));
}

double Burst::finish() {
  ORRERY_CUDA(cudaEventSynchronize(stop_));
  float ms = 0;
  ORRERY_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
  return 1e3 * static_cast<double>(ms) / count_;
}

void sustain(const Context& context, const Launch& launch, double seconds, double one_us,
             const BurstSeen& seen) {
  const auto start = std::chrono::steady_clock::now();
  const auto passed_s = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // One burst is always waiting behind the one that runs.
  Burst bursts[2];
  bursts[0].enqueue(launch, launches_for(kSustainPeriod_s, one_us));
  for (int i = 0; passed_s() < seconds && !context.out_of_time(); ++i) {
    bursts[(i + 1) % 2].enqueue(launch, launches_for(kSustainPeriod_s, one_us));
    one_us = bursts[i % 2].finish();
    seen(passed_s(), one_us);
  }
  ORRERY_CUDA(cudaDeviceSynchronize());
}

}  // namespace orrery::measure
