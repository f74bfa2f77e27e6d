// SPDX-License-Identifier: Apache-2.0
// Intervals against replays of drawn prices, and what intervals must hold to.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/intervals.h"
#include "sim/app/experiments/core/play.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/steps/model_experiment.h"
#include "sim/app/experiments/steps/model_step.h"
#include "sim/app/pricing/kernel_slowdowns.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/machine/draws.h"
#include "sim/replay/replay.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::interval_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

LoadedExperiment load(const std::string& name, const std::vector<std::string>& overrides) {
  return load_experiment(kConfigs + "/experiments/" + name + ".yaml", overrides,
                         config::Library(kConfigs));
}

/// A small training job: Llama-3.1-8B on two nodes, every kind of parallelism.
LoadedExperiment training(const std::string& more = "name=small") {
  return load("llama_405b_training",
              {"system=dgx_h100", "nodes=2", "model=llama_3_1_8b", "parallel.tp=2", "parallel.pp=4",
               "parallel.dp=2", "batch.global=32", "batch.sequence=4096", more});
}

double width(const Metric& metric) {
  return std::log(metric.interval->second / metric.interval->first);
}

/// log(p90 / p10) of the step by the first-order factors, and by replaying drawn prices.
struct Widths {
  double first_order = 0, replayed = 0;
};

Widths widths_of(const ModelExperiment& e, const Program& program) {
  const Machine& machine = e.machine();
  const auto model = machine.kernels({});
  const StepOutcome outcome = replay_step(e, *model, program);
  const auto [p10, p90] = p10_p90(step_draws({machine, *model, program, outcome, e.seed}).step);
  std::vector<std::vector<double>> factors;
  for (const Kernel& kernel : program.kernels)
    factors.push_back(model->draws(kernel, e.system.accelerator, e.seed));
  std::vector<std::vector<double>> waits;
  for (std::size_t id = 0; id < program.transfers.size(); ++id) {
    waits.push_back(
        machine.draws(program.transfers[id], outcome.priced.transfers[id].isolated_time, e.seed));
  }
  std::vector<double> times;
  KernelSlowdowns slowdowns(machine, e.fidelity, program, nullptr);
  for (std::size_t draw = 0; draw < kDraws; ++draw) {
    Costs costs = outcome.priced.costs;
    for (std::size_t id = 0; id < costs.kernels.size(); ++id) {
      const double time = to_seconds(costs.kernels[id].duration).base() * factors[id][draw];
      costs.kernels[id].duration = to_picoseconds(Seconds(time));
      costs.kernels[id].launch = std::min(costs.kernels[id].launch, costs.kernels[id].duration);
    }
    for (std::size_t id = 0; id < costs.transfers.size(); ++id) {
      if (waits[id].empty()) continue;
      TransferCost& cost = costs.transfers[id];
      cost.latency = static_cast<Picoseconds>(
          std::llround(static_cast<double>(cost.latency) * waits[id][draw]));
      cost.loads.change([&](LinkLoad& load) { load.bytes *= waits[id][draw]; });
    }
    times.push_back(to_seconds(replay(program, costs, {nullptr, &slowdowns}).end).base());
  }
  const auto [low, high] = p10_p90(times);
  return {std::log(p90 / p10), std::log(high / low)};
}

/// In a process of its own: one process holds one machine.
Widths isolated_widths(const ModelExperiment& e) {
  const auto outcome = run_isolated([&] {
    const Widths w = widths_of(e, e.step(e.model.build()).program);
    return std::to_string(w.first_order) + " " + std::to_string(w.replayed);
  });
  Widths widths;
  std::istringstream(std::get<std::string>(outcome)) >> widths.first_order >> widths.replayed;
  return widths;
}

TEST(Intervals, FirstOrderIsWhatReplaysOfDrawnPricesGive) {
  const LoadedExperiment train = training();
  const Widths t = isolated_widths(train.as<ModelExperiment>());
  EXPECT_GT(t.replayed, 0.01);
  EXPECT_NEAR(t.first_order, t.replayed, 0.1 * t.replayed);
  const LoadedExperiment decode = load("deepseek_r1_decode", {});
  const Widths d = isolated_widths(decode.as<ModelExperiment>());
  EXPECT_GT(d.replayed, 0.01);
  EXPECT_NEAR(d.first_order, d.replayed, 0.1 * d.replayed);
}

TEST(Intervals, WaitsForMeasuredCollectivesWidenAStep) {
  // Half of the step is waits for collectives of 8 GPUs.
  const LoadedExperiment loaded =
      load("llama_405b_training",
           {"system=dgx_h100", "nodes=1", "model=llama_3_1_8b", "parallel.tp=8", "parallel.pp=1",
            "parallel.dp=1", "batch.global=8", "batch.sequence=512"});
  const auto& e = loaded.as<ModelExperiment>();
  const auto text = run_isolated([&e] {
    const Program program = e.step(e.model.build()).program;
    const auto model = e.machine().kernels({});
    const StepOutcome outcome = replay_step(e, *model, program);
    SystemConfig unmeasured = e.system;
    unmeasured.scale_up.calibration.clear();
    const Machine kernels_alone(unmeasured, e.nodes);
    const auto with = p10_p90(step_draws({e.machine(), *model, program, outcome, e.seed}).step);
    const auto without =
        p10_p90(step_draws({kernels_alone, *model, program, outcome, e.seed}).step);
    return std::to_string((with.second - with.first) / (without.second - without.first));
  });
  EXPECT_GT(std::stod(std::get<std::string>(text)), 1.02);
  const Widths w = isolated_widths(e);
  EXPECT_NEAR(w.first_order, w.replayed, 0.1 * w.replayed);
}

TEST(Intervals, HoldThePrediction) {
  const RunRecord record = simulate_isolated(training()).record;
  for (const char* name : {"step_time_s", "tokens_per_s", "model_flops_utilization"}) {
    const Metric& metric = *record.find(name);
    ASSERT_TRUE(metric.interval) << name;
    EXPECT_LT(metric.interval->first, metric.value) << name;
    EXPECT_GT(metric.interval->second, metric.value) << name;
  }
}

TEST(Intervals, PartsOfAStepHaveTheirOwn) {
  const RunRecord record = simulate_isolated(training("software.unmodelled=0")).record;
  // Kernels alone are less certain than with links and bubbles; forward and backward together are
  // as certain as the step or more uncertain, each.
  EXPECT_GE(width(*record.find("breakdown.compute_s")), 0.99 * width(*record.find("step_time_s")));
  for (const char* name : {"forward_time_s", "backward_time_s", "energy_j", "average_power_w"})
    EXPECT_GT(width(*record.find(name)), 0) << name;
  // The uncertainty of power comes to that of the time.
  EXPECT_GT(width(*record.find("energy_j")), width(*record.find("step_time_s")));
}

// A machine that takes less time than predicted would draw more than predicted, but for its cap.
TEST(Intervals, NoMachineDrawsMoreThanTheCapAllows) {
  for (const char* system : {"dgx_a100", "dgx_h100", "dgx_b200"}) {
    const auto loaded =
        test::load(std::string("{experiment: operator, system: ") + system +
                   ", precision: bf16, operator: {kind: gemm, m: 16384, n: 16384, k: 16384}}");
    const Metric power = *simulate(loaded).find("average_power_w");
    const auto& device = dynamic_cast<const MachineExperiment&>(*loaded.experiment);
    const double cap = device.system.accelerator.power.cap().base();
    EXPECT_LE(power.value, cap * 1.0001) << system;
    EXPECT_LE(power.interval->second, std::max(power.value, cap)) << system;
    EXPECT_GT(power.interval->second, 0.95 * cap) << system;
  }
}

// Independent causes: squares of widths add up. 2.563 deviations lie between p10 and p90.
TEST(Intervals, StepsAreLessCertainByWhatTheirGraphsLeaveOut) {
  const auto wide = [](const std::string& unmodelled, const char* name) {
    return width(
        *simulate_isolated(training("software.unmodelled=" + unmodelled)).record.find(name));
  };
  for (const char* name : {"step_time_s", "forward_time_s"})
    EXPECT_NEAR(wide("0.1", name), std::hypot(wide("0", name), 0.2563), 0.03) << name;
  EXPECT_EQ(wide("0.1", "breakdown.compute_s"), wide("0", "breakdown.compute_s"));
}

TEST(Intervals, StepsOfExpertsAreLessCertainThanOthersByATermOfTheirOwn) {
  const auto wide = [](const std::string& model, const std::string& experts) {
    const std::string ep = model == "gpt_oss_20b" ? "8" : "1";
    const LoadedExperiment loaded = load(
        "llama_405b_training",
        {"system=dgx_h100", "nodes=2", "model=" + model, "parallel.tp=1", "parallel.sp=false",
         "parallel.pp=1", "parallel.dp=16", "parallel.ep=" + ep, "batch.global=16",
         "batch.sequence=4096", "software.unmodelled=0", "software.experts.unmodelled=" + experts});
    return width(*simulate_isolated(loaded).record.find("step_time_s"));
  };
  EXPECT_NEAR(wide("gpt_oss_20b", "0.1"), std::hypot(wide("gpt_oss_20b", "0"), 0.2563), 0.03);
  EXPECT_EQ(wide("llama_3_1_8b", "0.1"), wide("llama_3_1_8b", "0"));
}

TEST(Intervals, ARateIsAsUncertainAsItsTime) {
  const RunRecord record = simulate_isolated(training()).record;
  EXPECT_NEAR(width(*record.find("step_time_s")), width(*record.find("tokens_per_s")), 1e-12);
}

// One factor of kernel.uncertainty, 0.4, for all kernels: p90 is exp(1.28 x 0.4) = 1.67 of what
// they take, and more with what graphs leave out. Downwards the rates of the device end it.
TEST(Intervals, OfPriorsDoNotAverageOutOverAStep) {
  for (const LoadedExperiment& loaded :
       {load("deepseek_r1_decode", {"calibration=none"}),
        load("deepseek_r1_decode",
             {"system=cm384", "parallel.dp=768", "parallel.ep=256", "precision=int8"})}) {
    const RunRecord record = simulate_isolated(loaded).record;
    const auto interval = record.find("step_time_s")->interval;
    ASSERT_TRUE(interval);
    const double step = record.find("step_time_s")->value;
    EXPECT_GT(interval->second / step, 1.4);
    EXPECT_LT(interval->second / step, 2);
    EXPECT_GT(step / interval->first, 1.2);
    EXPECT_TRUE(record.find("energy_j")->interval);
    EXPECT_EQ(record.provenance.at("analytic"), 1.0);
    EXPECT_TRUE(record.provenance.at("calibration").is_null());
  }
}

TEST(Intervals, SharesOfTheProvenanceAddUpToOne) {
  const RunRecord record = simulate_isolated(training()).record;
  double sum = 0;
  for (const char* kind : {"measured", "calibrated", "analytic", "extrapolated"})
    sum += record.provenance.at(kind).get<double>();
  EXPECT_NEAR(sum, 1, 1e-12);
  EXPECT_GT(record.provenance.at("calibrated").get<double>(), 0.5);
}

TEST(Intervals, ACalibrationIsPartOfTheIdentity) {
  EXPECT_NE(load("deepseek_r1_decode", {}).identity,
            load("deepseek_r1_decode", {"calibration=none"}).identity);
  EXPECT_EQ(load("deepseek_r1_decode", {}).identity,
            load("deepseek_r1_decode", {"calibration=gb200"}).identity);
}

TEST(Intervals, AnUnknownCalibrationIsTheUsersMistake) {
  try {
    load("deepseek_r1_decode", {"calibration=gb20"});
    FAIL();
  } catch (const config::ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'gb200'"), std::string::npos)
        << error.what();
  }
}

TEST(Intervals, AChangedChipIsExtrapolated) {
  const RunRecord record =
      simulate_isolated(load("deepseek_r1_decode", {"system.accelerator.memory.bandwidth=16 TB/s"}))
          .record;
  EXPECT_EQ(record.provenance.at("calibrated"), 0.0);
  EXPECT_GT(record.provenance.at("extrapolated").get<double>(), 0.3);
}

}  // namespace
}  // namespace orrery::interval_test
