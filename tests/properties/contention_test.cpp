// SPDX-License-Identifier: Apache-2.0
// What transfers that run beside kernels do to a step.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery::contention_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

LoadedExperiment load(const std::string& file, const std::vector<std::string>& overrides = {}) {
  return load_experiment(ORRERY_SOURCE_DIR "/tests/golden/" + file + ".yaml", overrides,
                         config::Library(kConfigs));
}

double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k) {
  Kernel kernel;
  kernel.name = "product";
  kernel.kind = KernelClass::kGemm;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const auto elements = static_cast<double>(m * k + k * n), results = static_cast<double>(m * n);
  kernel.matrix_flops = Flops(2 * results * static_cast<double>(k));
  kernel.read = Bytes(2 * elements);
  kernel.written = Bytes(2 * results);
  return kernel;
}

Kernel stream(Bytes bytes) {
  Kernel kernel;
  kernel.name = "stream";
  kernel.kind = KernelClass::kElementwise;
  kernel.read = kernel.written = bytes / 2;
  return kernel;
}

/// A large product and a kernel that only streams memory, on an A100.
class Slowdowns : public testing::Test {
 protected:
  static Program both() {
    Program program;
    program.kernels = {product(8192, 8192, 8192), stream(Bytes(4e9))};
    return program;
  }
  double product_beside(DeviceLoad load) { return slowdowns_.slowdown(0, load); }
  double stream_beside(DeviceLoad load) { return slowdowns_.slowdown(1, load); }

  LoadedExperiment loaded_ = load("selene_22b_layer");
  Program program_ = both();
  KernelSlowdowns slowdowns_{loaded_.as<MachineExperiment>().machine(), Fidelity::kAuto, program_,
                             nullptr};
};

TEST_F(Slowdowns, AProductIsSlowedByTheShareOfTheSms) {
  // 24 of 108 SMs: 108 / 84 = 1.29, and the last waves are as long as before or longer.
  EXPECT_NEAR(product_beside({24, 0}), 108.0 / 84, 0.04);
  EXPECT_LT(product_beside({0, 200'000'000'000}), 1.1);
}

TEST_F(Slowdowns, AStreamOfBytesIsSlowedByTheShareOfTheMemory) {
  // 510 of 2,039 GB/s: 4/3.
  EXPECT_NEAR(stream_beside({0, 509'750'000'000}), 4.0 / 3, 0.02);
}

TEST_F(Slowdowns, GrowWithWhatIsTaken) {
  double product_before = 1, stream_before = 1;
  for (const std::int64_t units : {0, 2, 8, 16, 24, 32, 64, 107, 108, 500}) {
    const double now = product_beside({units, 0});
    EXPECT_GE(now, product_before) << units;
    product_before = now;
    const double bytes = stream_beside({0, units * 5'000'000'000});
    EXPECT_GE(bytes, stream_before) << units;
    stream_before = bytes;
  }
  EXPECT_EQ(product_beside({}), 1);
}

TEST_F(Slowdowns, AProductThatKeepsOffSmsPaysForThemOnce) {
  const double beside_twice = product_beside({48, 0}), beside_bytes = product_beside({24, 1 << 30});
  const double own = slowdowns_.keep_off(0, 24);
  EXPECT_NEAR(own, 108.0 / 84, 0.04);
  EXPECT_EQ(product_beside({24, 0}), 1);
  EXPECT_DOUBLE_EQ(product_beside({48, 0}) * own, beside_twice);
  EXPECT_DOUBLE_EQ(product_beside({0, 1 << 30}) * own, beside_bytes);
}

TEST(Contention, ATrainingStepSaysWhatItsTransfersCostItsKernels) {
  const RunRecord on = simulate_isolated(load("selene_22b_layer")).record;
  const RunRecord off =
      simulate_isolated(load("selene_22b_layer", {"contention.transfers=false"})).record;
  EXPECT_EQ(metric(off, "breakdown.contention_s"), 0);
  const double longer = metric(on, "breakdown.contention_s");
  EXPECT_GT(longer, 0);
  // What kernels take longer hides more of the transfers: the step grows by that at most.
  const double grown = metric(on, "step_time_s") - metric(off, "step_time_s");
  EXPECT_GT(grown, 0);
  EXPECT_LE(grown, longer * (1 + 1e-9));
  EXPECT_EQ(metric(on, "breakdown.compute_s"), metric(off, "breakdown.compute_s"));
  // Forward passes have no transfers beside kernels.
  EXPECT_EQ(metric(on, "forward_time_s"), metric(off, "forward_time_s"));
}

TEST(Contention, AStepWithoutOverlapIsTheSameToTheLastDigit) {
  const std::vector<std::string> alone = {"parallel.tp=1", "parallel.sp=false"};
  RunRecord on = simulate_isolated(load("selene_22b_layer", alone)).record;
  std::vector<std::string> overrides = alone;
  overrides.emplace_back("contention.transfers=false");
  RunRecord off = simulate_isolated(load("selene_22b_layer", overrides)).record;
  ASSERT_EQ(on.metrics.size(), off.metrics.size());
  for (std::size_t i = 0; i < on.metrics.size(); ++i)
    EXPECT_EQ(on.metrics[i].value, off.metrics[i].value) << on.metrics[i].name;
}

}  // namespace
}  // namespace orrery::contention_test
