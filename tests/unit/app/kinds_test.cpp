// SPDX-License-Identifier: Apache-2.0
// Kinds of experiment: each has keys of its own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/app/experiments/collective.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/training/training.h"
#include "tests/unit/app/loaded_text.h"

namespace orrery::kinds_test {
namespace {

using test::error_of;
using test::load;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::string kReduce =
    "experiment: collective\nsystem: dgx_h100\ncollective: {kind: all_reduce, bytes: 1 MiB}\n";
const std::string kStep =
    "experiment: training\nsystem: dgx_h100\nmodel: llama_3_1_8b\n"
    "batch: {micro: 1, sequence: 1024}\n";

TEST(Kinds, ACollectiveRefusesAKeyOfTrainingAndSaysWhoHasIt) {
  EXPECT_THAT(
      error_of(kReduce + "recompute: full\n"),
      AllOf(HasSubstr("test.yaml:4:1: error: unknown key 'recompute' in experiment collective"),
            HasSubstr("'recompute' is a key of: training")));
  EXPECT_THAT(error_of(kReduce, {"recompute=full"}),
              AllOf(HasSubstr("--set recompute=full: error: unknown key 'recompute'"),
                    HasSubstr("'recompute' is a key of: training")));
}

// A key that is not in its configuration cannot rename its points.
TEST(Kinds, AConfigurationHasTheKeysOfItsKindAlone) {
  const LoadedExperiment reduce = load(kReduce);
  std::vector<std::string> keys;
  for (const auto& [key, value] : reduce.configuration.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("calibration", "collective", "engine", "experiment", "faults",
                                "name", "nodes", "record", "seed", "system"));
  EXPECT_TRUE(load(kStep).configuration.contains("recompute"));
  EXPECT_FALSE(load(kStep).configuration.contains("kv_length"));
}

TEST(Kinds, AnAssignmentMayChangeTheKind) {
  const LoadedExperiment step =
      load(kReduce, {"collective.kind=all_gather", "collective.bytes=2 MiB"});
  EXPECT_EQ(step.as<CollectiveExperiment>().collective->kind, TransferKind::kAllGather);
  const LoadedExperiment other = load(
      "experiment: inference\nsystem: dgx_h100\nmodel: llama_3_1_8b\n"
      "batch: {micro: 1, sequence: 1024}\n",
      {"experiment=training", "recompute=full"});
  EXPECT_EQ(other.as<TrainingExperiment>().recompute.granularity, Recompute::kFull);
}

TEST(Kinds, AFileThatSaysNoneIsToldWhichThereAre) {
  EXPECT_THAT(
      error_of("system: dgx_h100\n"),
      AllOf(HasSubstr("missing key 'experiment'"),
            HasSubstr("collective, inference, layers, operator, replay, serving, training")));
  EXPECT_THAT(error_of("experiment: trainning\nsystem: dgx_h100\n"),
              AllOf(HasSubstr("test.yaml:1:13: error: expected one of"),
                    HasSubstr("did you mean 'training'")));
}

TEST(Kinds, KeysThatAllHaveAreNotSaidToBeElsewhere) {
  EXPECT_THAT(error_of(kReduce + "sede: 1\n"), Not(HasSubstr("is a key of")));
  EXPECT_EQ(ExperimentKinds::with_key("seed").size(), ExperimentKinds::items().size());
}

}  // namespace
}  // namespace orrery::kinds_test
