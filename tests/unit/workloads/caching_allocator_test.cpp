// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/memory/caching_allocator.h"
#include "workloads/software/training_software.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"

namespace orrery::caching_allocator_test {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
using Handle = CachingAllocator::Handle;

TEST(CachingAllocator, RoundsTensorsTo512Bytes) {
  CachingAllocator allocator(Segments::kFixed);
  allocator.allocate(1);
  EXPECT_EQ(allocator.allocated(), 512);
  allocator.allocate(513);
  EXPECT_EQ(allocator.allocated(), 512 + 1024);
  EXPECT_EQ(allocator.reserved(), 2 * kMiB);
}

TEST(CachingAllocator, TensorsBelowTenMiBShareSegmentsOfTwenty) {
  CachingAllocator allocator(Segments::kFixed);
  allocator.allocate(9 * kMiB);
  allocator.allocate(9 * kMiB);
  EXPECT_EQ(allocator.reserved(), 20 * kMiB);
  allocator.allocate(9 * kMiB);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

TEST(CachingAllocator, LargerOnesHaveSegmentsOfTheirOwnInStepsOfTwoMiB) {
  CachingAllocator allocator(Segments::kFixed);
  allocator.allocate(11 * kMiB);
  EXPECT_EQ(allocator.reserved(), 12 * kMiB);
  allocator.allocate(12 * kMiB + 1);
  EXPECT_EQ(allocator.reserved(), 12 * kMiB + 14 * kMiB);
}

TEST(CachingAllocator, TakesTheSmallestFreeBlockThatHoldsATensor) {
  CachingAllocator allocator(Segments::kFixed);
  const Handle large = allocator.allocate(64 * kMiB), small = allocator.allocate(32 * kMiB);
  allocator.free(large);
  allocator.free(small);
  allocator.allocate(30 * kMiB);  // in that of 32
  allocator.allocate(64 * kMiB);
  EXPECT_EQ(allocator.reserved(), 96 * kMiB);
}

TEST(CachingAllocator, FreedNeighboursJoinButSegmentsDoNot) {
  for (const Segments segments : {Segments::kFixed, Segments::kExpandable}) {
    CachingAllocator allocator(segments);
    const Handle first = allocator.allocate(20 * kMiB), second = allocator.allocate(20 * kMiB);
    allocator.free(first);
    allocator.free(second);
    allocator.allocate(40 * kMiB);
    EXPECT_EQ(allocator.reserved(), (segments == Segments::kFixed ? 80 : 40) * kMiB);
  }
}

TEST(CachingAllocator, ASegmentThatGrowsTakesTheFreeBlockAtItsEnd) {
  CachingAllocator allocator(Segments::kExpandable);
  allocator.allocate(20 * kMiB);
  const Handle last = allocator.allocate(20 * kMiB);
  allocator.free(last);
  allocator.allocate(60 * kMiB);
  EXPECT_EQ(allocator.reserved(), 80 * kMiB);
}

TEST(CachingAllocator, StreamsDoNotShareBlocks) {
  CachingAllocator allocator(Segments::kExpandable);
  allocator.free(allocator.allocate(20 * kMiB, 0));
  allocator.allocate(20 * kMiB, 1);
  EXPECT_EQ(allocator.reserved(), 40 * kMiB);
}

// Logits of 2 B, a copy and log-probabilities of 4 B; with those two gradients of 4 B. The first
// lies where logits and copy were, which leaves no room for the second: 14 B where 12 are alive.
TEST(CachingAllocator, ALossByOperatorsReservesFourteenBytesALogit) {
  CachingAllocator allocator(Segments::kExpandable);
  const std::int64_t logits = 100 * kMiB;
  const Handle narrow = allocator.allocate(2 * logits), wide = allocator.allocate(4 * logits);
  const Handle probabilities = allocator.allocate(4 * logits);
  allocator.free(wide);
  allocator.free(narrow);
  allocator.allocate(4 * logits);
  allocator.allocate(4 * logits);
  allocator.free(probabilities);
  EXPECT_EQ(allocator.peak_allocated(), 12 * logits);
  EXPECT_EQ(allocator.reserved(), 14 * logits);
}

// Layers that are computed again keep their inputs of 20 MiB. Each is made beside the 100 MiB that
// the layer before it works with, so that these leave a gap that a loss of 160 MiB has no use for.
TEST(CachingAllocator, InputsBesideWorkingTensorsLeaveAGapForTheLoss) {
  CachingAllocator allocator(Segments::kExpandable);
  allocator.allocate(20 * kMiB);
  for (int layer = 0; layer < 4; ++layer) {
    const Handle working = allocator.allocate(100 * kMiB);
    allocator.allocate(20 * kMiB);
    allocator.free(working);
  }
  allocator.allocate(160 * kMiB);
  EXPECT_EQ(allocator.allocated(), (5 * 20 + 160) * kMiB);
  EXPECT_EQ(allocator.reserved(), (5 * 20 + 100 + 160) * kMiB);
}

TEST(CachingAllocator, NeverHoldsLessThanItGaveOut) {
  for (const Segments segments : {Segments::kFixed, Segments::kExpandable}) {
    std::mt19937_64 random(7);
    CachingAllocator allocator(segments);
    std::vector<Handle> alive;
    std::int64_t reserved = 0;
    for (int i = 0; i < 20000; ++i) {
      if (alive.empty() || random() % 100 < 55) {
        const std::int64_t bytes = static_cast<std::int64_t>(1 + random() % 1000)
                                   << (random() % 16);
        alive.push_back(allocator.allocate(bytes, static_cast<int>(random() % 2)));
      } else {
        const std::size_t at = random() % alive.size();
        allocator.free(alive[at]);
        alive[at] = alive.back();
        alive.pop_back();
      }
      ASSERT_LE(allocator.allocated(), allocator.reserved());
      ASSERT_LE(reserved, allocator.reserved());
      reserved = allocator.reserved();
    }
    for (const Handle handle : alive) allocator.free(handle);
    EXPECT_EQ(allocator.allocated(), 0);
    EXPECT_EQ(allocator.reserved(), reserved);
    // All freed blocks have merged, so that one large tensor fits without new memory.
    if (segments == Segments::kExpandable) {
      const Handle most = allocator.allocate(allocator.peak_allocated() / 4, 0);
      EXPECT_EQ(allocator.reserved(), reserved);
      allocator.free(most);
    }
  }
}

TrainingConfig step(std::int64_t sequence, TrainingSoftware software) {
  TrainingConfig config;
  config.sequence = sequence;
  config.software = std::make_shared<const TrainingSoftware>(std::move(software));
  return config;
}

TrainingSoftware by_operators() {
  TrainingSoftware software;
  software.saved_tensors.value = SavedTensors::kOperators;
  software.loss_tensors.value = LossTensors::kOperators;
  return software;
}

// Inputs of two norms in fp32 and their values, what two products read, queries, keys, values and
// the result, and four times the 2.6875 of the MLP: its gate, what the function gives, the other
// column and their product. Beside the residual, 22 3/4 of [tokens, hidden] in 16 bits.
TEST(SavedTensors, OfALlamaByOperatorsAre22TimesItsHiddenStates) {
  const LlmConfig model = library_model("llama_2_7b");
  const double hidden = 2048.0 * 4096 * 2, sums = 2048.0 * 32 * 4;
  const auto kept = [&](TrainingConfig config) {
    return layer_activation_bytes(model, model.layers[0], rank_work(model, config)).base();
  };
  EXPECT_DOUBLE_EQ(kept(step(2048, by_operators())), 22.75 * hidden + sums);
  EXPECT_DOUBLE_EQ(kept(step(2048, {})), (8 + 3 * 2.6875) * hidden + sums);
  // Frozen weights need neither normed values nor inputs, adapters those of their matrices.
  TrainingConfig frozen = step(2048, by_operators());
  frozen.lora = TrainingLora{.rank = 8, .target_modules = {LoraModule::kQkvProj}};
  EXPECT_DOUBLE_EQ(kept(frozen), (4 + 1 + 4 + 3 * 2.6875) * hidden + sums + 2048 * 8 * 2);
  frozen.lora->dropout = 0.05;
  EXPECT_DOUBLE_EQ(kept(frozen), (4 + 1.5 + 4 + 3 * 2.6875) * hidden + sums + 2048 * 8 * 2);
}

// Beside adapters of queries, keys and values, in [tokens, hidden] of 16 bits: norms that keep
// their input narrow save 2 x 1; the packed product stays beside rotated queries and keys, 2 more;
// and adapters of queries and values that are padded keep 2.
TEST(SavedTensors, OfScriptsFollowTheirNormsHeadsAndAdapters) {
  const LlmConfig model = library_model("llama_2_7b");
  const double hidden = 2048.0 * 4096 * 2;
  const auto kept = [&](const TrainingSoftware& software) {
    TrainingConfig config = step(2048, software);
    config.lora = TrainingLora{.rank = 8, .target_modules = {LoraModule::kQkvProj}};
    return layer_activation_bytes(model, model.layers[0], rank_work(model, config)).base();
  };
  const auto more = [&](Fact<bool> TrainingSoftware::*fact, bool value) {
    TrainingSoftware software = by_operators();
    (software.*fact).value = value;
    return (kept(software) - kept(by_operators())) / hidden;
  };
  EXPECT_DOUBLE_EQ(more(&TrainingSoftware::wide_norms, false), -2);
  EXPECT_DOUBLE_EQ(more(&TrainingSoftware::keeps_packed_heads, true), 2);
  EXPECT_DOUBLE_EQ(more(&TrainingSoftware::pads_adapters, true), 2);
}

// Quantised matrices of bitsandbytes before 0.44 keep what they read beside the copies of adapters:
// inputs of attention and of the MLP, and the 2.6875 that the last matrix reads. The output matrix
// reads the result of attention, which is kept anyway.
TEST(SavedTensors, OfQuantisedFrozenMatricesAreTheirInputsIfTheSoftwareKeepsThem) {
  const LlmConfig model = library_model("llama_2_7b");
  const double hidden = 2048.0 * 4096 * 2;
  const auto kept = [&](bool keeps, FrozenFormat base, double dropout) {
    TrainingSoftware software = by_operators();
    software.keeps_frozen_inputs.value = keeps;
    TrainingConfig config = step(2048, software);
    config.lora = TrainingLora{.rank = 8, .target_modules = {LoraModule::kQkvProj}};
    config.lora->base = base;
    config.lora->dropout = dropout;
    return layer_activation_bytes(model, model.layers[0], rank_work(model, config)).base();
  };
  const auto more = [&](FrozenFormat base, double dropout) {
    return (kept(true, base, dropout) - kept(false, base, dropout)) / hidden;
  };
  EXPECT_DOUBLE_EQ(more(FrozenFormat::kNf4, 0.05), 2 + 2.6875);
  // Without dropout adapters read what the matrix reads.
  EXPECT_DOUBLE_EQ(more(FrozenFormat::kNf4, 0), 1 + 2.6875);
  EXPECT_DOUBLE_EQ(more(FrozenFormat::kAsTrained, 0.05), 0);
}

TEST(LossTensors, TakeWhatTheSoftwareMakesOfLogits) {
  const LlmConfig model = library_model("llama_3_1_8b");
  const double logits = 8192.0 * 128256;
  const auto most = [&](LossTensors tensors, int tp, LossFormat format = LossFormat::kFp32) {
    TrainingSoftware software;
    software.loss_tensors.value = tensors;
    software.loss_format.value = format;
    TrainingConfig config = step(8192, software);
    config.parallel.tp = tp;
    config.recompute = Recompute::kFull;
    const Program program = build_training(model, config, true).program;
    return memory_profile(program, program.roles[0]).peak(TensorRole::kLogits).base() / logits * tp;
  };
  EXPECT_DOUBLE_EQ(most(LossTensors::kInPlace, 1), 6);
  EXPECT_DOUBLE_EQ(most(LossTensors::kOperators, 1), 12);
  EXPECT_DOUBLE_EQ(most(LossTensors::kOperators, 2), 16);
  EXPECT_DOUBLE_EQ(most(LossTensors::kChunks, 1), 2 + 4 + 0.5);
  EXPECT_LT(most(LossTensors::kWithHead, 1), 1);
  // Logits, their copy without the last token, that widened, and log-probabilities; as much with
  // two gradients in fp32. In 16 bits three tensors of 2 B each way.
  EXPECT_DOUBLE_EQ(most(LossTensors::kShifted, 1), 2 + 2 + 4 + 4);
  EXPECT_DOUBLE_EQ(most(LossTensors::kShifted, 1, LossFormat::kWeights), 6);
  EXPECT_DOUBLE_EQ(most(LossTensors::kOperators, 1, LossFormat::kWeights), 6);
  EXPECT_DOUBLE_EQ(most(LossTensors::kChunks, 1, LossFormat::kWeights), 4);
  // Logits and their gradient.
  EXPECT_DOUBLE_EQ(most(LossTensors::kCompiled, 1), 4);
}

/// Tensors of some MiB.
LlmConfig deep_moe() {
  LlmConfig model = small_moe(12);
  model.hidden = 1024;
  model.moe.intermediate = 2048;
  model.vocabulary = 32768;
  return model;
}

TEST(ReservedMemory, HoldsWhatIsAllocatedAndLittleMore) {
  for (const LlmConfig& model : {library_model("llama_3_1_8b"), deep_moe()}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kFull}) {
      for (const int pp : {1, 3}) {
        TrainingSoftware software = by_operators();
        software.segments.value = Segments::kExpandable;
        software.releases_gradients.value = true;
        TrainingConfig config = step(2048, software);
        config.recompute = recompute;
        config.parallel = {.pp = pp, .dp = 8, .zero = 3};
        config.global_batch = 8 * 2 * pp;
        const std::vector<MemoryUse> stages = training_memory(model, config);
        for (int stage = 0; stage < pp; ++stage) {
          const double allocated = stages[static_cast<std::size_t>(stage)].total().base();
          const double reserved = training_reserved(model, config, stage).base();
          EXPECT_GT(reserved, 0.85 * allocated) << model.name << " stage " << stage;
          EXPECT_LT(reserved, 1.5 * allocated) << model.name << " stage " << stage;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::caching_allocator_test
