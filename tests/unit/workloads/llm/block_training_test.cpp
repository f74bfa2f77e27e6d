// SPDX-License-Identifier: Apache-2.0
// Training of what some families have in layers of attention and an MLP or experts, by hand:
// parallel blocks with two norms (GPT-NeoX, Falcon), gates on heads (Step-3.5), norms beside
// experts (Gemma 4).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/example_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/training.h"

namespace orrery::block_training_test {
namespace {

using test::kernel;

constexpr double kRows = 3 * 16;                            // 3 sequences of 16 tokens
constexpr double kWidth = 64;                               // of small_llama
constexpr double kHeads = 8, kResult = 64, kColumns = 128;  // result of heads; with keys and values

RankWork training_work(int tp = 1) {
  RankWork work;
  work.batch.sequences = 3;
  work.batch.query = work.batch.context = 16;
  work.split.tp = tp;
  work.split.sp = tp > 1;
  return work;
}

int count(const StepList& list, const std::string& name) {
  return static_cast<int>(std::count_if(list.steps().begin(), list.steps().end(),
                                        [&](const Step& step) { return step.name() == name; }));
}

int collectives(const StepList& list) {
  return static_cast<int>(
      std::count_if(list.steps().begin(), list.steps().end(),
                    [](const Step& step) { return step.collective() != nullptr; }));
}

double kept(const LlmConfig& model, const RankWork& work) {
  return layer_activation_bytes(model, model.layers[0], work).base();
}

StepList forward(const LlmConfig& model, const RankWork& work) {
  return layer_forward(model, model.layers[0], work);
}
StepList backward(const LlmConfig& model, const RankWork& work) {
  return layer_backward(model, model.layers[0], work);
}

const std::vector<ParallelConfig> kPlans = {ParallelConfig{},
                                            ParallelConfig{.tp = 2, .sp = true, .pp = 2, .dp = 2}};
const std::vector<ParallelConfig> kExpertPlans = {
    ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2, .dp = 2, .ep = 2}};

LlmConfig parallel_llama(int norms) {
  LlmConfig model = small_llama(4);
  model.parallel_block = true;
  model.norms_per_layer = norms;
  return model;
}

// The layer's input, which both norms read; inputs of both first products; queries, keys and
// values; result and fp32 sums of attention; two columns in front of the function and one behind.
TEST(ParallelBlockOfTwoNorms, KeepsAnInputForEachHalfAndOneForTheirNorms) {
  const double each = 2 * (3 * kWidth + kColumns + kResult + 3 * 192) + 4 * kHeads;
  EXPECT_EQ(kept(parallel_llama(2), training_work()), kRows * each);
  EXPECT_EQ(kept(parallel_llama(1), training_work()), kRows * (each - 2 * kWidth));
  EXPECT_EQ(kept(small_llama(1), training_work()), kRows * (each + 2 * kWidth));
}

TEST(ParallelBlockOfTwoNorms, ReducesSumsOnceAndGradientsOfEachNormsOutput) {
  // Forward a gather for each half and one reduction; backward a gather of the gradient, and for
  // each half a gather of its input and a reduction.
  EXPECT_EQ(collectives(forward(parallel_llama(2), training_work(2))), 3);
  EXPECT_EQ(collectives(backward(parallel_llama(2), training_work(2))), 5);
  EXPECT_EQ(collectives(forward(parallel_llama(1), training_work(2))), 2);
  EXPECT_EQ(collectives(backward(parallel_llama(1), training_work(2))), 3);
}

TEST(ParallelBlockOfTwoNorms, EachNormHasItsGradients) {
  const StepList steps = backward(parallel_llama(2), training_work());
  EXPECT_EQ(count(steps, "mlp norm backward"), 1);
  EXPECT_EQ(count(steps, "attention norm backward"), 1);
  EXPECT_EQ(count(steps, "parallel block addition backward"), 0);
}

TEST(ParallelBlockOfTwoNorms, TensorsOfStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(parallel_llama(2), 16, kPlans);
}

LlmConfig gated_llama() {
  LlmConfig model = small_llama(4);
  model.attention.head_gate = true;
  return model;
}

// A column for each head; what heads gave and that times the gate are two tensors.
TEST(GatesOfHeads, KeepTheirColumnsAndTheResultBesideTheOutputsInput) {
  EXPECT_EQ(kept(gated_llama(), training_work()) - kept(small_llama(1), training_work()),
            kRows * 2 * (kHeads + kResult));
}

TEST(GatesOfHeads, HaveGradientsOfTheirMatrixAndOfWhatTheyScale) {
  const StepList steps = backward(gated_llama(), training_work());
  EXPECT_EQ(kernel(steps, "attention gate dgrad").matrix_flops.base(), 2 * kRows * kWidth * kHeads);
  EXPECT_EQ(kernel(steps, "attention gate wgrad").matrix_flops.base(), 2 * kRows * kWidth * kHeads);
  const Kernel& gating = kernel(steps, "attention gating backward");
  EXPECT_EQ(gating.read.base(), kRows * 2 * (2 * kResult + kHeads));
  EXPECT_EQ(gating.written.base(), kRows * 2 * (kResult + kHeads));
  EXPECT_EQ(kernel(steps, "attention gate input gradient add").read.base(), kRows * 4 * kWidth);
}

// The gate reads what was gathered for queries, and its gradient goes with theirs.
TEST(GatesOfHeads, AddNoCollective) {
  EXPECT_EQ(collectives(forward(gated_llama(), training_work(2))),
            collectives(forward(small_llama(1), training_work(2))));
  EXPECT_EQ(collectives(backward(gated_llama(), training_work(2))),
            collectives(backward(small_llama(1), training_work(2))));
}

TEST(GatesOfHeads, TensorsOfStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(gated_llama(), 16, kPlans);
  LlmConfig sinks = gated_llama();
  sinks.attention.sinks = true;
  test::expect_balanced_tensors(sinks, 16, kPlans);
}

LlmConfig normed_moe() {
  LlmConfig model = small_moe(4);
  model.norms_per_layer = 4;
  model.moe.norms = 4;
  return model;
}

// Results of the MLP and of experts in front of their norms; what the MLP reads is another tensor
// than what the router reads.
TEST(NormsBesideExperts, KeepTheirInputs) {
  LlmConfig without = normed_moe();
  without.moe.norms = 0;
  EXPECT_EQ(kept(normed_moe(), training_work()) - kept(without, training_work()),
            kRows * 2 * (2 + 1) * kWidth);
  RankWork again = training_work();
  again.passes.recompute = Recompute::kFull;
  EXPECT_EQ(kept(normed_moe(), again), kRows * 2 * kWidth);
}

TEST(NormsBesideExperts, TwoHaveGradientsBehindExpertsAndTwoInFront) {
  const StepList steps = backward(normed_moe(), training_work());
  EXPECT_EQ(count(steps, "expert norm backward"), 2);
  EXPECT_EQ(count(steps, "expert input norm backward"), 2);
}

TEST(NormsBesideExperts, TensorsOfStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(normed_moe(), 16, kExpertPlans);
}

/// Values that are keys are one tensor in front of both norms.
TEST(ValuesOfKeys, AreKeptOnceInFrontOfTheirNorms) {
  LlmConfig model = small_llama(1);
  model.attention.qk_norm = model.attention.value_norm = true;
  const double apart = kept(model, training_work());
  model.attention.values_of_keys = true;
  EXPECT_EQ(apart - kept(model, training_work()), kRows * 2 * 4 * 8);
}

}  // namespace
}  // namespace orrery::block_training_test
