// SPDX-License-Identifier: Apache-2.0
// Buffers of training steps beside weights, gradients and activations, by hand.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/training/memory/gathered_weights.h"
#include "workloads/steps/training/memory/kept_messages.h"
#include "workloads/steps/training/sharded_weights.h"

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

/// Gathers of a Llama of 8 billion parameters that is sharded, in memory that grows.
class Gathers {
 public:
  explicit Gathers(EndUnits ends, bool last_stays = false) : model_(library_model("llama_3_1_8b")) {
    TrainingSoftware software;
    software.gather_copies.value = Fusion::kApart;
    software.end_units.value = ends;
    software.last_layer_stays.value = last_stays;
    config_.parallel.dp = 8;
    config_.parallel.zero = 3;
    config_.global_batch = 8;
    config_.sequence = 32;
    config_.software = std::make_shared<const TrainingSoftware>(std::move(software));
    pieces_ = std::make_unique<Pieces>(model_, config_);
    weights_ = std::make_unique<GatheredWeights>(allocator_, model_, config_, *pieces_, 0);
  }

  /// GB allocated once the forward pass has gone through so many pieces.
  double behind(std::size_t count) {
    const std::vector<Piece> forward = pieces_->of({0, 0});
    for (; done_ < count; ++done_) {
      weights_->gather(forward, done_);
      weights_->leave(forward[done_]);
    }
    if (count == forward.size()) weights_->end_pass();
    return static_cast<double>(allocator_.allocated()) / 1e9;
  }
  double most() const { return static_cast<double>(allocator_.peak_allocated()) / 1e9; }

 private:
  LlmConfig model_;
  TrainingConfig config_;
  CachingAllocator allocator_{Segments::kExpandable};
  std::unique_ptr<Pieces> pieces_;
  std::unique_ptr<GatheredWeights> weights_;
  std::size_t done_ = 0;
};

// Llama 3.1 8B in 16 bits: a table of 128,256 x 4,096 has 1.051 GB, a layer 2 x 218.1 million
// bytes.
constexpr double kTable = 1.0507, kLayer = 0.4362;

TEST(GatheredWeights, OfTheRootAreGatheredAtOnceAndStay) {
  Gathers gathers(EndUnits::kRoot);
  // Both tables and the buffer that they are copied from; then the buffer of the first layer is
  // not there yet.
  EXPECT_NEAR(gathers.behind(1), 2 * kTable, 0.001);
  EXPECT_NEAR(gathers.most(), 4 * kTable, 0.001);
  // Behind a layer the buffer of the next one is left; behind all of them nothing.
  EXPECT_NEAR(gathers.behind(2), 2 * kTable + kLayer, 0.001);
  EXPECT_NEAR(gathers.behind(34), 2 * kTable, 0.001);
}

TEST(GatheredWeights, OfEndsApartAreTheHeadsAloneBehindTheForwardPass) {
  Gathers gathers(EndUnits::kApart);
  EXPECT_NEAR(gathers.behind(1), 0, 0.001);
  EXPECT_NEAR(gathers.behind(34), kTable, 0.001);
  EXPECT_NEAR(gathers.most(), 2 * kTable, 0.01);
}

TEST(GatheredWeights, OfTheLastLayerStayIfTheSoftwareKeepsThem) {
  EXPECT_NEAR(Gathers(EndUnits::kRoot, true).behind(34), 2 * kTable + kLayer, 0.001);
}

// Micro-batches of 2 sequences of 32 tokens with 64 hidden values in 16 bits: messages of 8 KiB.
TEST(KeptMessages, AreHiddenStatesOfAMicroBatchInsideThePipeline) {
  TrainingSoftware software;
  software.keeps_messages.value = true;
  TrainingConfig config;
  config.parallel.pp = 4;
  config.micro_batch = 2;
  config.global_batch = 16;
  config.sequence = 32;
  config.software = std::make_shared<const TrainingSoftware>(std::move(software));
  const LlmConfig model = small_llama(4);
  const Pieces pieces(model, config);
  const RankWork work = rank_work(model, config);
  const double message = 2 * 32 * 64 * 2;
  EXPECT_EQ(micro_batches(config), 8);
  for (int stage = 0; stage < 4; ++stage) {
    const KeptMessages kept = kept_messages(pieces, work, {stage, 0});
    EXPECT_DOUBLE_EQ(kept.received.base(), stage > 0 ? message : 0);
    EXPECT_DOUBLE_EQ(kept.sent.base(), stage < 3 ? message : 0);
  }
  // Stage 0 holds the outputs of its 4 micro-batches in flight, and buffers for 8 gradients.
  TrainingConfig others = config;
  others.software = default_software();
  EXPECT_DOUBLE_EQ(training_memory(model, config).front().activations.base() -
                       training_memory(model, others).front().activations.base(),
                   (4 + 8) * message);
}

// 32 tokens of 64 values in 16 bits, which DTensor gathers and copies into the order of tokens.
// User buffers have them in order.
TEST(GradientFlow, OfDTensorHasGatheredRowsTwice) {
  const LlmConfig model = small_llama(1);
  const auto flow = [&](bool dtensor, TensorOverlap overlap) {
    TrainingSoftware software;
    software.keeps_gathered_inputs.value = dtensor;
    software.tp_overlap.value = overlap;
    TrainingConfig config;
    config.parallel = {.tp = 2, .sp = true};
    config.sequence = 32;
    config.software = std::make_shared<const TrainingSoftware>(std::move(software));
    return gradient_flow({model, model.layers[0], rank_work(model, config)}).base();
  };
  const double once = flow(false, TensorOverlap::kNone);
  EXPECT_DOUBLE_EQ(flow(true, TensorOverlap::kNone) - once, 32 * 64 * 2);
  EXPECT_DOUBLE_EQ(flow(true, TensorOverlap::kUserBuffers), once);
}

}  // namespace
}  // namespace orrery::training_buffers_test
