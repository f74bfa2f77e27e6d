// SPDX-License-Identifier: Apache-2.0
// What must hold of every prediction, whatever the parameters are.
#include <gtest/gtest.h>

#include <utility>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/sweeps/workers/run_point.h"

namespace orrery::physics_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

RunRecord run(const std::string& experiment, const std::vector<std::string>& overrides) {
  // In a process of its own: one process holds one machine.
  return simulate_isolated(load_experiment(kConfigs + "/experiments/" + experiment + ".yaml",
                                           overrides, config::Library(kConfigs)))
      .record;
}

double metric(const RunRecord& record, const char* name) {
  const Metric* m = record.find(name);
  return m != nullptr ? m->value : -1;
}

/// A small training job: Llama-3.1-8B on two nodes, every kind of parallelism.
RunRecord train(std::vector<std::string> overrides) {
  std::vector<std::string> all = {
      "system=dgx_h100", "nodes=2",       "model=llama_3_1_8b", "parallel.tp=2",
      "parallel.pp=4",   "parallel.dp=2", "batch.global=32",    "batch.sequence=4096"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return run("llama_405b_training", all);
}

TEST(Physics, BetterHardwareIsNeverSlower) {
  // Training on priors by stages that do not wait for their messages, which then never meet on a
  // link: fair sharing can make two that do meet end a latency later when one of them leaves
  // earlier. Nor at the power cap, where units that wait less draw more and lose clock.
  const auto step = [](std::vector<std::string> overrides) {
    overrides.insert(overrides.end(), {"calibration=none", "software.pp_overlap=all",
                                       "system.accelerator.power.state=burst"});
    return metric(train(std::move(overrides)), "step_time_s");
  };
  const double training = step({});
  const double decode = metric(run("deepseek_r1_decode", {}), "step_time_s");
  for (const char* better :
       {"system.accelerator.memory.bandwidth=20 TB/s",
        "system.accelerator.compute.vector=500 TFLOP/s",
        "system.accelerator.scale_up.bandwidth=4 TB/s",
        "system.accelerator.scale_out.bandwidth=8 Tb/s", "system.accelerator.kernel.launch=0.1 us",
        "system.scale_up.latency=0.1 us", "system.scale_out.latency=0.1 us"}) {
    EXPECT_LE(step({better}), training * (1 + 1e-12)) << better;
    EXPECT_LE(metric(run("deepseek_r1_decode", {better}), "step_time_s"), decode * (1 + 1e-12))
        << better;
  }
}

TEST(Physics, NoStepBeatsTheComputeBound) {
  for (const RunRecord& record :
       {train({}), train({"recompute=none"}), run("deepseek_r1_prefill", {})}) {
    EXPECT_GT(metric(record, "model_flops_utilization"), 0);
    EXPECT_LT(metric(record, "hardware_flops_utilization"), 1);
    EXPECT_LE(metric(record, "model_flops_utilization"),
              metric(record, "hardware_flops_utilization") * (1 + 1e-9));
  }
}

TEST(Physics, DecodeNeverBeatsReadingItsWeightsOnce) {
  // Weights of a rank over the full memory bandwidth of one GB200: 8 TB/s. The embedding table is
  // only looked up.
  const RunRecord record = run("deepseek_r1_decode", {});
  const double embedding = 129280.0 * 7168 * 2;
  const double read = metric(record, "memory.weights_bytes") - embedding;
  // At batch 1 a rank need not touch all of its experts, so count the attention and shared weights
  // alone: 256 + 32 expert copies of 3 * 7168 * 2048 bytes in 58 layers, spread over 72 ranks.
  const double experts = 288.0 / 72 * 58 * 3 * 7168 * 2048;
  EXPECT_GT(metric(record, "step_time_s"), (read - experts) / 8e12);
}

TEST(Physics, TokensAreConserved) {
  const RunRecord record = train({});
  EXPECT_NEAR(metric(record, "tokens_per_s") * metric(record, "step_time_s"), 32 * 4096, 1e-6);
  EXPECT_NEAR(metric(record, "tokens_per_s_per_accelerator") * 16, metric(record, "tokens_per_s"),
              1e-6);
}

TEST(Physics, PowerLiesBetweenIdleAndThermalDesign) {
  // H100: 75 W idle, 700 W TDP; 16 of them.
  const double watts = metric(train({}), "average_power_w");
  EXPECT_GT(watts, 16 * 70.0);
  EXPECT_LT(watts, 16 * 770.0);
}

TEST(Physics, EnergyIsPowerTimesTime) {
  const RunRecord record = train({});
  EXPECT_NEAR(metric(record, "energy_j"),
              metric(record, "average_power_w") * metric(record, "step_time_s"),
              1e-6 * metric(record, "energy_j"));
}

TEST(Physics, RecomputationTradesMemoryForTime) {
  const RunRecord none = train({"recompute=none"}), selective = train({"recompute=selective"}),
                  full = train({"recompute=full"});
  EXPECT_GT(metric(none, "peak_memory_bytes"), metric(full, "peak_memory_bytes"));
  EXPECT_GE(metric(selective, "step_time_s"), metric(none, "step_time_s"));
  EXPECT_GT(metric(full, "step_time_s"), metric(selective, "step_time_s"));
}

TEST(Physics, MoreMicroBatchesShrinkTheBubble) {
  // (pp - 1) / (m + pp - 1) of the step for m = 4, 16, 64, and what the other stages wait for the
  // last one, whose head (32,000 x 4096) is 0.6 of a layer beside its 8: up to 0.6 / 8.6 = 7 %.
  double last = 1;
  for (const char* batch : {"batch.global=8", "batch.global=32", "batch.global=128"}) {
    const RunRecord record = train({"model=mistral_7b", batch});
    const double share = metric(record, "breakdown.bubble_s") / metric(record, "step_time_s");
    EXPECT_LT(share, last) << batch;
    last = share;
  }
  EXPECT_GT(last, 3.0 / (64 + 3) * 0.9);
  EXPECT_LT(last, 3.0 / (64 + 3) + 0.6 / 8.6);
}

/// Step times of growing batches; each at most `share` shorter than the one before.
void expect_growing(const std::string& calibration, double share) {
  double step = 0, rate = 0;
  for (const int batch : {1, 2, 4, 8, 16, 32, 64, 128}) {
    const RunRecord record = run("deepseek_r1_decode", {"calibration=" + calibration,
                                                        "batch.micro=" + std::to_string(batch)});
    EXPECT_GE(metric(record, "step_time_s"), step * (1 - share)) << batch;
    EXPECT_GE(metric(record, "tokens_per_s"), rate) << batch;
    step = metric(record, "step_time_s");
    rate = metric(record, "tokens_per_s");
  }
}

TEST(Physics, ALargerBatchIsNeverFasterAndNeverLessEfficient) { expect_growing("none", 0); }

TEST(Physics, ALargerBatchIsHardlyFasterWhereLibrariesChangeTheirKernels) {
  // Measured: 4096 x 4096 weights take 12.8 us with 16 tokens and 12.0 us with 64 on an H200.
  expect_growing("auto", 0.01);
}

TEST(Physics, BreakdownAddsUpToTheStepToThePicosecond) {
  for (const RunRecord& record :
       {train({}), train({"recompute=none"}), run("deepseek_r1_decode", {})}) {
    double sum = 0;
    for (const char* part : {"compute", "contention", "exposed_communication", "bubble",
                             "optimizer", "host", "idle"}) {
      sum += metric(record, ("breakdown." + std::string(part) + "_s").c_str());
    }
    EXPECT_NEAR(sum, metric(record, "step_time_s"), 1e-12 * 7);
  }
}

TEST(Physics, AScaledMachineScalesTheStep) {
  // All rates times 2 and all latencies over 2 halve the step, to the rounding of picoseconds. A
  // calibration's launches would stay.
  const RunRecord base = run("deepseek_r1_decode", {"calibration=none"});
  const RunRecord twice = run(
      "deepseek_r1_decode",
      {"calibration=none", "system.accelerator.memory.bandwidth=16 TB/s",
       "system.accelerator.compute.vector=160 TFLOP/s",
       "system.accelerator.compute.matrix.fp8=10000 TFLOP/s",
       "system.accelerator.compute.matrix.bf16=5000 TFLOP/s",
       "system.accelerator.scale_up.bandwidth=1800 GB/s",
       "system.accelerator.kernel.launch=1.025 us", "system.scale_up.latency=0.95 us",
       "system.expert_exchange.dispatch_start=6.25 us",
       "system.expert_exchange.dispatch_floor=3 us", "system.expert_exchange.combine_start=9.25 us",
       "system.expert_exchange.combine_floor=6.5 us"});
  EXPECT_NEAR(metric(twice, "step_time_s") / metric(base, "step_time_s"), 0.5, 2e-3);
}

}  // namespace
}  // namespace orrery::physics_test
