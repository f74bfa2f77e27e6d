// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "device/gemm_data.cuh"

namespace orrery::measure::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr GemmShape kShape{8192, 8192, 8192};
constexpr double kPeriod_s = 0.02;  // of one busy and one idle part, and of a row
constexpr double kRest_s = 0.3;     // before every phase, so that each starts from idle

/// Seconds since `start`.
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A burst of GEMMs between two events.
class Burst {
 public:
  Burst() {
    ORRERY_CUDA(cudaEventCreate(&start_));
    ORRERY_CUDA(cudaEventCreate(&stop_));
  }
  ~Burst() {
    cudaEventDestroy(start_);
    cudaEventDestroy(stop_);
  }
  Burst(const Burst&) = delete;
  Burst& operator=(const Burst&) = delete;

  void enqueue(const LtGemm& gemm, const GemmData& data, int count) {
    count_ = count;
    ORRERY_CUDA(cudaEventRecord(start_, nullptr));
    for (int i = 0; i < count; ++i) {
      gemm.run(nullptr, data.in(kShape, 0), data.weight(kShape, 0), data.out(kShape, 0));
    }
    ORRERY_CUDA(cudaEventRecord(stop_, nullptr));
  }

  /// Waits; microseconds of one GEMM.
  double finish() {
    ORRERY_CUDA(cudaEventSynchronize(stop_));
    float ms = 0;
    ORRERY_CUDA(cudaEventElapsedTime(&ms, start_, stop_));
    return 1e3 * static_cast<double>(ms) / count_;
  }

 private:
  cudaEvent_t start_ = nullptr, stop_ = nullptr;
  int count_ = 0;
};

struct Phase {
  Data data;
  int duty_percent;
  double seconds;
};

class Staircase {
 public:
  Staircase(const Context& context, Table& table)
      : context_(context),
        table_(table),
        data_(context, Format::kBf16, std::size_t{8192} * 8192 * 2),
        gemm_(LtGemm::plan(library_, Format::kBf16, kShape)) {
    if (!gemm_) throw std::runtime_error("cuBLASLt has no bf16 GEMM of 8192^3");
    check();
  }

  void run(const Phase& phase) {
    if (phase.data != current_) {
      data_.refill(phase.data);
      current_ = phase.data;
      check();
    }
    sleep_for(kRest_s);
    const Clock::time_point start = Clock::now();
    if (phase.duty_percent == 100) {
      run_without_pause(phase, start);
    } else {
      run_with_pauses(phase, start);
    }
  }

 private:
  void check() { data_.check(*gemm_, kShape, 64); }

  /// GEMMs that fill `seconds`, by the time of the last ones.
  int count_for(double seconds) const {
    return std::max(1, static_cast<int>(seconds / (1e-6 * gemm_us_) + 0.5));
  }

  /// One burst is always waiting behind the one that runs.
  void run_without_pause(const Phase& phase, Clock::time_point start) {
    Burst bursts[2];
    bursts[0].enqueue(*gemm_, data_, count_for(kPeriod_s));
    for (int i = 0; since(start) < phase.seconds && !context_.out_of_time(); ++i) {
      bursts[(i + 1) % 2].enqueue(*gemm_, data_, count_for(kPeriod_s));
      gemm_us_ = bursts[i % 2].finish();
      add_row(phase, since(start));  // the state is read while the next burst runs
    }
    ORRERY_CUDA(cudaDeviceSynchronize());
  }

  void run_with_pauses(const Phase& phase, Clock::time_point start) {
    const double duty = phase.duty_percent / 100.0;
    Burst burst;
    while (since(start) < phase.seconds && !context_.out_of_time()) {
      // At least one GEMM is busy; the idle part follows from what the burst took.
      const Clock::time_point began = Clock::now();
      burst.enqueue(*gemm_, data_, count_for(duty * kPeriod_s));
      gemm_us_ = burst.finish();
      const double busy_s = since(began);
      add_row(phase, since(start));
      const double idle_s = busy_s / duty - since(began);
      if (idle_s > 0) sleep_for(idle_s);
    }
  }

  void add_row(const Phase& phase, double time_s) {
    const DeviceState state = context_.state();
    table_.add_row({context_.system, std::string(name_of(phase.data)),
                    std::int64_t{phase.duty_percent}, time_s, gemm_us_,
                    kShape.flops() / (gemm_us_ * 1e-6), state.sm_clock_mhz, state.power_w,
                    state.temperature_c});
  }

  const Context& context_;
  Table& table_;
  LtLibrary library_;
  GemmData data_;
  std::optional<LtGemm> gemm_;
  Data current_ = Data::kRandom;
  double gemm_us_ = 1500;  // a first guess, replaced by the first burst
};

std::vector<Phase> phases(bool full) {
  if (!full) {
    return {{Data::kRandom, 25, 1}, {Data::kRandom, 100, 3}, {Data::kZeros, 100, 3}};
  }
  std::vector<Phase> result;
  for (const Data data : {Data::kRandom, Data::kZeros, Data::kSparse}) {
    for (const int duty : {5, 10, 25, 50, 75}) result.push_back({data, duty, 0.8});
    result.push_back({data, 100, data == Data::kRandom ? 8.0 : 4.0});
  }
  return result;
}

void run(const Context& context, Table& table) {
  Staircase staircase(context, table);
  for (const Phase& phase : phases(context.depth == Depth::kFull)) {
    if (context.out_of_time()) break;
    staircase.run(phase);
  }
}

const Registration registration({
    .number = 11,
    .name = "power",
    .what = "time series of power and clock under bf16 GEMM 8192^3 by duty cycle and data: clock "
            "at the power cap, energy of an operation, time constants",
    .quick_s = 10,
    .full_s = 36,
    .columns = {"system", "data", "duty_percent", "time_s", "latency_us", "flops_per_s",
                "sm_clock_mhz", "power_w", "temperature_c"},
    .run = run,
});

}  // namespace
}  // namespace orrery::measure::power
