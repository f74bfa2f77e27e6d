// SPDX-License-Identifier: Apache-2.0
// A pipeline schedule that is one class and one Register object in one file: this one.
#include "workloads/schedules/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/workers/run_point.h"
#include "sim/config/load.h"

namespace orrery::schedule_of_one_file_test {
namespace {

/// GPipe (Huang et al. 2019): all forwards, then all backwards.
class AllForwardFirst final : public PipelineSchedule {
 public:
  ChunkLimits chunks() const override { return {1, 1}; }
  std::vector<Pass> passes(const PipelineShape& shape, int) const override {
    std::vector<Pass> all;
    for (const Pass::Kind kind : {Pass::Kind::kForward, Pass::Kind::kBackward}) {
      for (std::int64_t i = 0; i < shape.micro_batches; ++i) all.push_back({kind, 0, i});
    }
    return all;
  }
};
const ScheduleRegistry::Register all_forward_first("all_forward_first", "of a test",
                                                   std::make_shared<AllForwardFirst>());

LoadedExperiment training(const std::string& more) {
  config::Diagnostics diagnostics;
  return load_experiment(
      config::parse_yaml("experiment: training\nsystem: dgx_h100\nmodel: llama_3_1_8b\n"
                         "fidelity: closed\n"
                         "batch: {global: 8, micro: 1, sequence: 2048}\n" +
                             more + "\n",
                         "test.yaml", diagnostics),
      {}, diagnostics);
}

double metric(const RunRecord& record, const char* name) { return record.find(name)->value; }

TEST(Schedule, OfOneFileRunsFromConfigurationToResult) {
  const std::string plan = "parallel: {tp: 4, sp: true, pp: 2}\n";
  const RunRecord one = simulate_isolated(training(plan)).record;
  const RunRecord other = simulate_isolated(training(plan + "schedule: all_forward_first")).record;
  EXPECT_EQ(one.status, RunStatus::kOk);
  EXPECT_EQ(other.status, RunStatus::kOk);
  EXPECT_NE(one.identity, other.identity);
  // The first stage keeps all 8 micro-batches where 1F1B keeps 2.
  EXPECT_DOUBLE_EQ(metric(other, "memory.activations_bytes"),
                   4 * metric(one, "memory.activations_bytes"));
  // Both fill and drain the pipeline once.
  EXPECT_NEAR(metric(other, "step_time_s") / metric(one, "step_time_s"), 1, 0.02);
}

TEST(Schedule, IsInterleavedWhereFilesHaveChunksAndNoSchedule) {
  const std::string plan = "parallel: {tp: 4, sp: true, pp: 2, vpp: 2}\n";
  const RunRecord untold = simulate_isolated(training(plan)).record;
  const RunRecord told = simulate_isolated(training(plan + "schedule: interleaved")).record;
  EXPECT_EQ(untold.status, RunStatus::kOk);
  EXPECT_EQ(metric(untold, "step_time_s"), metric(told, "step_time_s"));
}

}  // namespace
}  // namespace orrery::schedule_of_one_file_test
