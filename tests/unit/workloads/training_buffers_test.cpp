// SPDX-License-Identifier: Apache-2.0
// Buffers of training steps beside weights, gradients and activations, by hand.
#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "tests/unit/workloads/example_models.h"
#include "workloads/memory.h"
#include "workloads/training/sharded_weights.h"

namespace orrery::training_buffers_test {
namespace {

/// A step of ZeRO stage `zero` that copies its gradients, which are in 16 bits.
TrainingConfig copying(int zero) {
  TrainingSoftware software;
  software.step_gradients.value = StepGradients::kCopied;
  software.bucket_buffers.value = 2;
  software.bucket_parameters.value = 2e8;
  TrainingConfig config;
  config.parallel.dp = 2;
  config.parallel.zero = zero;
  config.global_batch = 2;
  config.sequence = 32;
  config.software = std::make_shared<const TrainingSoftware>(std::move(software));
  return config;
}

// DeepSpeed's ZeRO-2 flattens all gradients of a rank, ZeRO-3 those of 10^9 parameters at a time.
TEST(StepCopies, AreAFlatTensorAndOneInFp32) {
  const StepCopies whole = step_copies(3e9, copying(2));
  EXPECT_DOUBLE_EQ(whole.flat.base(), 2 * 3e9);
  EXPECT_DOUBLE_EQ(whole.wide.base(), 4 * 3e9);
  const StepCopies group = step_copies(3e9, copying(3));
  EXPECT_DOUBLE_EQ(group.flat.base(), 2 * 1e9);
  EXPECT_DOUBLE_EQ(group.wide.base(), 4 * 1e9);
  EXPECT_DOUBLE_EQ(step_copies(5e8, copying(3)).wide.base(), 4 * 5e8);
}

TEST(StepCopies, OfSoftwareThatReadsGradientsAsTheyAreAreNone) {
  TrainingConfig config = copying(2);
  config.software = default_software();
  EXPECT_EQ(step_copies(3e9, config).wide.base(), 0);
  EXPECT_EQ(step_copies(3e9, config).flat.base(), 0);
}

TEST(BucketBuffers, HaveTheirSizeWhateverTheModel) {
  EXPECT_DOUBLE_EQ(bucket_buffers(copying(2)).base(), 2 * 2e8 * 2);
  EXPECT_DOUBLE_EQ(bucket_buffers(copying(3)).base(), 2 * 2e8 * 2);
  EXPECT_EQ(bucket_buffers(copying(1)).base(), 0);
}

// A model of 10^5 parameters beside buckets of 0.8 GB: its peak is in a backward pass.
TEST(BucketBuffers, ArePartOfThePeakOfBackwardPasses) {
  const double working = training_memory(small_llama(2), copying(2)).front().working.base();
  EXPECT_GE(working, 8e8);
  EXPECT_LT(working, 8.1e8);
}

}  // namespace
}  // namespace orrery::training_buffers_test
