// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/memory_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace orrery::memory_profile_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using What = TensorEvent::What;

/// A block that makes 100 bytes to keep and 30 to work with, and one that frees the first.
Program two_blocks(std::vector<BlockId> calls) {
  Program program;
  program.tensors = {{"kept", Bytes(100), TensorRole::kActivation},
                     {"scratch", Bytes(30), TensorRole::kWorking}};
  program.kernels.resize(1);
  program.blocks.resize(2);
  for (OperatorGraph& block : program.blocks) block.add({.name = "step"});
  program.tensor_events = {{{What::kMakes, 0, 0}, {What::kMakes, 1, 0}, {What::kFrees, 1, 0}},
                           {{What::kUses, 0, 0}, {What::kFrees, 0, 0}}};
  program.roles = {{"all", std::move(calls), {0}}};
  return program;
}

// Two forwards before the first backward: 200 kept, and 30 beside them while the second runs.
TEST(MemoryProfile, IsASumOverTheCallsOfARole) {
  const Program program = two_blocks({0, 0, 1, 0, 1, 1});
  const MemoryProfile profile = memory_profile(program, program.roles[0]);
  EXPECT_EQ(profile.peak(TensorRole::kActivation), Bytes(200));
  EXPECT_EQ(profile.peak(TensorRole::kWorking), Bytes(30));
  EXPECT_EQ(profile.peak(TensorRole::kLogits), Bytes());
  EXPECT_EQ(profile.peak(), Bytes(230));
  EXPECT_EQ(profile.left(), Bytes());
  EXPECT_THAT(memory_after_calls(program, program.roles[0]),
              ElementsAre(Bytes(100), Bytes(200), Bytes(100), Bytes(200), Bytes(100), Bytes()));
  EXPECT_THAT(verify_tensors(program), IsEmpty());
}

// 50 to keep, then 70 to work with where 40 of the 50 are gone: 50 at first, 80 later.
TEST(MemoryProfile, OfAllRolesIsAtOneTime) {
  MemoryProfile first, later;
  first.makes(TensorRole::kActivation, Bytes(50));
  first.frees(TensorRole::kActivation, Bytes(40));
  later.makes(TensorRole::kWorking, Bytes(70));
  first.then(later);
  EXPECT_EQ(first.peak(), Bytes(80));
  EXPECT_EQ(first.peak(TensorRole::kActivation) + first.peak(TensorRole::kWorking), Bytes(120));
}

TEST(VerifyTensors, FindsWhatIsFreedTwiceAndWhatNeverIs) {
  EXPECT_THAT(verify_tensors(two_blocks({0, 1, 1})),
              ElementsAre(HasSubstr("role 'all': tensor 'kept' is used by 'step' before")));
  EXPECT_THAT(verify_tensors(two_blocks({0, 0, 1})),
              ElementsAre(HasSubstr("tensor 'kept' is never freed")));
}

TEST(VerifyTensors, HasNothingToSayWhereNobodyAskedForTensors) {
  Program program = two_blocks({1, 1});
  program.tensors.clear();
  program.tensor_events.clear();
  EXPECT_THAT(verify_tensors(program), IsEmpty());
  EXPECT_EQ(memory_profile(program, program.roles[0]).peak(), Bytes());
}

}  // namespace
}  // namespace orrery::memory_profile_test
