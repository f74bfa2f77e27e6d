// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "device/gemm_data.cuh"
#include "device/sustain.cuh"

namespace orrery::measure::power {
namespace {

using Clock = std::chrono::steady_clock;

constexpr GemmShape kShape{8192, 8192, 8192};
constexpr double kRest_s = 0.3;  // before every phase, so that each starts from idle

/// Seconds since `start`.
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void sleep_for(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

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
    if (phase.duty_percent == 100) {
      run_without_pause(phase);
    } else {
      run_with_pauses(phase);
    }
  }

 private:
  void check() { data_.check(*gemm_, kShape, 64); }

  void launch(cudaStream_t stream) const {
    gemm_->run(stream, data_.in(kShape, 0), data_.weight(kShape, 0), data_.out(kShape, 0));
  }

  void run_without_pause(const Phase& phase) {
    sustain(
        context_, [this](cudaStream_t stream, int) { launch(stream); }, phase.seconds, gemm_us_,
        [&](double time_s, double one_us) {
          gemm_us_ = one_us;
          add_row(phase, time_s);
        });
  }

  void run_with_pauses(const Phase& phase) {
    const Clock::time_point start = Clock::now();
    const double duty = phase.duty_percent / 100.0;
    Burst burst;
    while (since(start) < phase.seconds && !context_.out_of_time()) {
      // At least one GEMM is busy; the idle part follows from what the burst took.
      const Clock::time_point began = Clock::now();
      burst.enqueue([this](cudaStream_t stream, int) { launch(stream); },
                    launches_for(duty * kSustainPeriod_s, gemm_us_));
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
  for (const Phase& phase : phases(context.depth != Depth::kQuick)) {
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
