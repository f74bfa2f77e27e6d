// SPDX-License-Identifier: Apache-2.0
// Software of training runs as files, keys and answers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/simulate.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/experiments/training/training.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/serving/engine_release.h"
#include "tests/unit/app/loaded_text.h"
#include "workloads/software/training_software.h"

namespace orrery::software_test {
namespace {

using test::error_of;
using test::load;
using testing::AllOf;
using testing::HasSubstr;

const std::string kStep =
    "experiment: training\nsystem: dgx_a100\nmodel: gpt_22b\nlayers_only: 1\n"
    "parallel: {tp: 8}\nbatch: {micro: 1, sequence: 1024}\n";

double metric(const std::vector<std::string>& set, const char* name) {
  return simulate(load(kStep, set)).find(name)->value;
}

TEST(Software, IsNamedAndEachSwitchIsSetAlone) {
  EXPECT_EQ(load(kStep).as<TrainingExperiment>().software.id, "megatron_core");
  const TrainingSoftware named =
      load(kStep + "software: megatron_lm_2021\n").as<TrainingExperiment>().software;
  EXPECT_EQ(named.tp_overlap.value, TensorOverlap::kNone);
  EXPECT_EQ(named.gradient_accumulation.value, Fusion::kApart);
  const TrainingSoftware changed =
      load(kStep + "software: megatron_lm_2021\n", {"software.tp_overlap=weight_gradients"})
          .as<TrainingExperiment>()
          .software;
  EXPECT_EQ(changed.tp_overlap.value, TensorOverlap::kWeightGradients);
  EXPECT_EQ(changed.gradient_accumulation.value, Fusion::kApart);
  EXPECT_EQ(
      load(kStep, {"software.tp_overlap=none"}).as<TrainingExperiment>().software.tp_overlap.value,
      TensorOverlap::kNone);
}

TEST(Software, WrongNamesAndValuesAreSaidWhereTheyStand) {
  EXPECT_THAT(error_of(kStep + "software: megatron_lm_2020\n"),
              AllOf(HasSubstr("test.yaml:7:11: error"), HasSubstr("megatron_lm_202")));
  EXPECT_THAT(error_of(kStep + "software: {tp_overlap: user_bufers}\n"),
              AllOf(HasSubstr("test.yaml:7:24: error"), HasSubstr("'user_buffers'")));
  EXPECT_THAT(error_of(kStep + "software: {tp_overlp: none}\n"),
              AllOf(HasSubstr("test.yaml:7:12: error"), HasSubstr("did you mean 'tp_overlap'")));
}

// A name is no part of what runs.
TEST(Software, IsTheSamePointUnderAnotherName) {
  EXPECT_EQ(load(kStep).identity, load(kStep + "software: megatron_core\n").identity);
  EXPECT_NE(load(kStep).identity, load(kStep + "software: megatron_lm_2022\n").identity);
}

bool is_of_engine(const std::string& name) { return is_engine_release(name); }

TEST(Software, OfTheLibraryNamesTheSourceOfEverySwitch) {
  const std::vector<CatalogEntry> described = described_software();
  ASSERT_GE(described.size(), 5u);
  for (const CatalogEntry& entry : described) {
    const std::string path = ORRERY_SOURCE_DIR "/configs/software/" + entry.name + ".yaml";
    if (std::filesystem::exists(path)) {
      EXPECT_EQ(file_kind(path), is_of_engine(entry.name) ? "engine_release" : "software") << path;
    }
    for (const auto& row : entry.details().json) {
      EXPECT_GT(row["source"].get<std::string>().size(), 10u) << entry.name << row;
      EXPECT_EQ(row["source"].get<std::string>().find("configs/software/"), std::string::npos)
          << entry.name << row;
    }
  }
  EXPECT_NO_THROW(describe({"software", "megatron_lm_2022"}));
}

TEST(Software, AnExperimentThatNamesOneIsAnExperiment) {
  EXPECT_EQ(file_kind(ORRERY_SOURCE_DIR "/configs/experiments/selene_22b.yaml"), "experiment");
}

TEST(StepOverhead, EndsTheStepLater) {
  const double plain = metric({}, "step_time_s");
  EXPECT_NEAR(metric({"software.step_overhead=1 ms"}, "step_time_s"), plain + 1e-3, 1e-9);
  EXPECT_NEAR(metric({"software.step_overhead=1 ms"}, "breakdown.host_s"),
              metric({}, "breakdown.host_s") + 1e-3, 1e-9);
}

TEST(KernelIssue, LimitsAStepOfManyKernels) {
  // Some 25 kernels of a layer, 1 ms each.
  EXPECT_GT(metric({"software.kernel_issue=1 ms"}, "step_time_s"), 0.02);
}

TEST(AttentionRates, DivideTheTimeOfAttentionAlone) {
  const auto at = [](const char* rate) {
    return metric({std::string("software.attention_backward=") + rate}, "backward_time_s");
  };
  EXPECT_NEAR(at("0.25") - at("0.5"), at("0.5") - at("1") + (at("0.5") - at("1")), 2e-6);
  EXPECT_EQ(metric({"software.attention_backward=0.5"}, "forward_time_s"),
            metric({}, "forward_time_s"));
}

// A switch moves the term of the breakdown that it is about, and no other.
TEST(Switches, MoveTheirOwnTermOfTheBreakdown) {
  struct Case {
    const char* set;
    const char* moves;
    const char* keeps;
  };
  for (const Case& c : {Case{"software.gradient_accumulation=apart", "breakdown.compute_s",
                             "breakdown.exposed_communication_s"},
                        Case{"software.bias_gradients=apart", "breakdown.compute_s",
                             "breakdown.exposed_communication_s"},
                        Case{"software.norm_backward=two_passes", "breakdown.compute_s",
                             "breakdown.exposed_communication_s"},
                        Case{"software.tp_overlap=none", "breakdown.exposed_communication_s",
                             "breakdown.compute_s"}}) {
    EXPECT_GT(metric({c.set}, c.moves), metric({}, c.moves)) << c.set;
    // Longer kernels beside a transfer hide some us more of it.
    EXPECT_NEAR(metric({c.set}, c.keeps), metric({}, c.keeps), 20e-6) << c.set;
  }
}

TEST(BeyondMemory, AStepThatDoesNotFitIsTimedAllTheSame) {
  const LoadedExperiment loaded = load(
      "experiment: training\nsystem: dgx_a100\nmodel: gpt_22b\n"
      "parallel: {tp: 8}\nbatch: {micro: 32, sequence: 2048}\n");
  const RunRecord refused = simulate(loaded);
  EXPECT_EQ(refused.status, RunStatus::kInfeasible);
  EXPECT_EQ(refused.find("step_time_s"), nullptr);
  SimulateOptions options;
  options.beyond_memory = true;
  const RunRecord timed = simulate(loaded, options);
  EXPECT_EQ(timed.status, RunStatus::kInfeasible);
  EXPECT_EQ(timed.reason, refused.reason);
  EXPECT_GT(timed.find("step_time_s")->value, 0.1);
}

}  // namespace
}  // namespace orrery::software_test
