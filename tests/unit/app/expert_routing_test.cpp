// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/serving.h"
#include "sim/config/load.h"

namespace orrery::expert_routing_test {
namespace {

LoadedExperiment load_text(const std::string& text, const std::vector<std::string>& set) {
  config::Diagnostics diagnostics;
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return load_experiment(config::parse_yaml(text, "test.yaml", diagnostics), set, diagnostics,
                         library);
}

constexpr const char* kDecode =
    "{experiment: inference, system: dgx_h100, model: mixtral_8x7b, precision: fp8, phase: decode, "
    "kv_length: 512, parallel: {tp: 1, dp: 8, ep: 8}, batch: {micro: 64}}";
constexpr const char* kServed =
    "experiment: serving\nmodel: mixtral_8x7b\nserving:\n"
    "  workload: {rate: 40 /s, requests: 30, input: 256, output: 16}\n"
    "  fleet: [{system: dgx_h100, parallel: {tp: 1, dp: 8, ep: 8}, precision: fp8, "
    "engine: {kind: vllm}}]\n";

RunRecord run_text(const std::string& text, const std::vector<std::string>& set = {}) {
  return simulate(load_text(text, set));
}
double value(const RunRecord& record, const char* name) { return record.find(name)->value; }

/// All but what a result says of the experiment itself.
std::vector<std::pair<std::string, double>> values(const RunRecord& record) {
  std::vector<std::pair<std::string, double>> all;
  for (const Metric& metric : record.metrics)
    if (metric.name != "wall_time_s" && metric.name != "expert_skew")
      all.emplace_back(metric.name, metric.value);
  return all;
}

TEST(ExpertRoutingOfSteps, AUniformHistogramIsBalance) {
  EXPECT_EQ(values(run_text(kDecode)),
            values(run_text(kDecode, {"expert_routing={loads: [3, 3, 3, 3, 3, 3, 3, 3]}"})));
  EXPECT_EQ(values(run_text(kServed)),
            values(run_text(kServed, {"serving.fleet.0.expert_routing={zipf: 0}"})));
}

TEST(ExpertRoutingOfSteps, TheHeaviestRankSetsTheTimeOfAll) {
  // A quarter of all copies on one of eight ranks. Its products have as many rows as those of all
  // ranks in a batch of twice the size; attention has not.
  const std::string uneven = "expert_routing={loads: [2, 1, 1, 1, 1, 1, 1, 0]}";
  const RunRecord skewed = run_text(kDecode, {uneven});
  EXPECT_DOUBLE_EQ(value(skewed, "expert_skew"), 2);
  EXPECT_GT(value(skewed, "step_time_s"), value(run_text(kDecode), "step_time_s"));
  EXPECT_LT(value(skewed, "step_time_s"),
            value(run_text(kDecode, {"batch.micro=128"}), "step_time_s"));
}

TEST(ExpertRoutingOfSteps, StepsOfServingTakeWhatStepsOfInferenceDo) {
  const std::vector<std::string> served = {
      "serving.fleet.0.expert_routing={zipf: 1}", "serving.fleet.0.engine.quant_fusion=true",
      "serving.fleet.0.engine.host={}",
      "serving.workload={concurrency: 8, requests: 8, input: 512, output: 2}"};
  const double tpot = value(run_text(kServed, served), "mean_tpot_ms");
  // One sequence on each rank.
  const double step =
      value(run_text(kDecode, {"expert_routing={zipf: 1}", "batch.micro=1"}), "step_time_s");
  EXPECT_NEAR(tpot / (step * 1e3), 1, 0.005);
}

TEST(ExpertRoutingOfSteps, ReplicasOfBusyExpertsServeFasterAndLeaveFewerBlocks) {
  const std::vector<std::string> alone = {"serving.fleet.0.expert_routing={zipf: 1}"};
  const std::vector<std::string> balanced = {
      "serving.fleet.0.expert_routing={zipf: 1, balancing: eplb, redundant_experts: 8}"};
  const RunRecord before = run_text(kServed, alone), after = run_text(kServed, balanced);
  EXPECT_LT(value(after, "mean_ttft_ms"), value(before, "mean_ttft_ms"));
  // One expert more on each rank: 32 layers of three matrices of 4,096 x 14,336 in a byte each. A
  // block has 16 tokens of 32 layers x 8 heads x 128 x 2 (K and V) x 2 B.
  const double block = 16.0 * 32 * 8 * 128 * 2 * 2, expert = 32.0 * 3 * 4096 * 14336;
  const auto memory = [](const std::vector<std::string>& set) {
    const LoadedExperiment loaded = load_text(kServed, set);
    const auto& served = loaded.as<ServingExperiment>();
    return served.fleet().memory(served.serving.fleet).front();
  };
  EXPECT_EQ((memory(balanced).weights - memory(alone).weights).base(), expert);
  const double less = (memory(alone).working - memory(balanced).working).base();
  EXPECT_GT(less, 0);  // the heaviest rank has fewer rows
  EXPECT_NEAR((value(before, "kv_blocks") - value(after, "kv_blocks")) * block, expert - less,
              block);
}

TEST(ExpertRoutingOfSteps, LoadsComeFromATable) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("loads." + std::to_string(getpid()) + ".csv"))
          .string();
  std::ofstream(path) << "expert,load\n0,2\n1,1\n2,1\n3,1\n4,1\n5,1\n6,1\n7,0\n";
  const LoadedExperiment loaded = load_text(kDecode, {"expert_routing={loads_file: " + path + "}"});
  EXPECT_EQ(loaded.experiment->input_files().back().role, "expert_loads");
  EXPECT_EQ(values(simulate(loaded)),
            values(run_text(kDecode, {"expert_routing={loads: [2, 1, 1, 1, 1, 1, 1, 0]}"})));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace orrery::expert_routing_test
