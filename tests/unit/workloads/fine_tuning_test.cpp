// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/fine_tuning.h"
#include "workloads/software/training_software.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/graph/memory_profile.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::fine_tuning_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainingConfig adapted(ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.global_batch = 4L * parallel.dp;
  config.sequence = 32;
  config.lora = TrainingLora{4, TrainingLora().target_modules};
  return config;
}

double executed(const LlmConfig& model, const TrainingConfig& config) {
  return program_statistics(build_training(model, config).program).matrix_flops().base();
}

/// Elements of the adapters of a layer of small_llama: of 64 x 128 (qkv), 64 x 64, 64 x 384, 192 x
/// 64.
constexpr double kAdapter = 4 * ((64 + 128) + (64 + 64) + (64 + 384) + (192 + 64));

/// Matrices have two products instead of three, adapters three.
TEST(FineTuning, OfAdaptersHasNoWeightGradientsOfTheModel) {
  const LlmConfig model = small_llama(2);
  const TrainingConfig config = adapted();
  TrainingConfig full = config;
  full.lora.reset();
  const double tokens = 4 * 32;
  const double matrices = 2 * 49152.0 + 64 * 96;
  EXPECT_DOUBLE_EQ(executed(model, full) - executed(model, config),
                   2 * tokens * (matrices - 3 * 2 * kAdapter));
  EXPECT_DOUBLE_EQ(model_flops(model, config).base() * 3, model_flops(model, full).base() * 2);
  // Shared by tensor parallel ranks: those with whole matrices compute them each.
  for (const ParallelConfig& plan :
       {ParallelConfig{.tp = 2}, ParallelConfig{.tp = 2, .sp = true}}) {
    const Program program = build_training(model, adapted(plan), true).program;
    EXPECT_THAT(verify(program), IsEmpty());
    EXPECT_THAT(verify_tensors(program), IsEmpty());
  }
}

// Dettmers et al. 2023, QLoRA (arXiv 2305.14314), section 3: 4 bits and an fp32 scale for 64
// values, or 0.127 bits of scales in two levels.
TEST(FineTuning, OfNarrowFrozenWeightsHoldsThemNarrow) {
  const LlmConfig model = small_llama(4);
  const double matrices = 4 * 49152.0;
  const auto weights = [&](FrozenFormat base) {
    TrainingConfig config = adapted();
    config.lora->base = base;
    return training_memory(model, config).front().weights.base();
  };
  const double wide = weights(FrozenFormat::kAsTrained);
  EXPECT_DOUBLE_EQ(wide - weights(FrozenFormat::kInt8), matrices);
  EXPECT_DOUBLE_EQ(wide - weights(FrozenFormat::kNf4), matrices * (2 - 4.5 / 8));
  EXPECT_NEAR(wide - weights(FrozenFormat::kNf4Double), matrices * (2 - 4.127 / 8),
              0.001 * matrices);
  // Each matrix is widened before its product and before the gradient of its input, and the largest
  // (64 x 384) lies beside its own tensors.
  TrainingConfig config = adapted();
  config.lora->base = FrozenFormat::kNf4;
  const auto read = [&](const TrainingConfig& of) {
    double bytes = 0;
    for (const auto& [name, kernels] :
         program_statistics(build_training(model, of).program).kernels)
      bytes += kernels.bytes.base();
    return bytes;
  };
  EXPECT_DOUBLE_EQ(read(config) - read(adapted()), 4 * 2 * matrices * (4.5 / 8 + 2));
  EXPECT_DOUBLE_EQ(training_memory(model, config).front().working.base() -
                       training_memory(model, adapted()).front().working.base(),
                   2 * 64 * 384.0);
}

// GPTQ in groups of 128: 4 bits, and a 16-bit scale and a 4-bit zero for each group. A layer that
// is computed again has all of its matrices in 16 bits (49,152 elements), and the packed words of
// the largest one (64 x 192) as int32 and as bytes.
TEST(FineTuning, OfGptqWeightsKeepsWhatItWidens) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = adapted();
  config.lora->base = FrozenFormat::kGptq;
  EXPECT_DOUBLE_EQ(frozen_bytes(FrozenFormat::kGptq, 2), (4 + 20.0 / 128) / 8);
  const auto kept = [&](FrozenFormat base) {
    TrainingConfig of = config;
    of.lora->base = base;
    return layer_activation_bytes(model, model.layers[0], rank_work(model, of)).base();
  };
  EXPECT_DOUBLE_EQ(kept(FrozenFormat::kGptq) - kept(FrozenFormat::kNf4), 2 * 49152.0);
  const LayerTask task{model, model.layers[0], rank_work(model, config)};
  EXPECT_DOUBLE_EQ(widening_bytes(task).base(), 5 * 64 * 192.0);
}

// Of a frozen model replicas exchange nothing but adapters: their gradients, and their weights
// where each has updated a share.
TEST(FineTuning, OfReplicasExchangesAdaptersAlone) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = adapted({.dp = 4, .zero = 1});
  for (const bool overlaps : {false, true}) {
    TrainingSoftware software;
    software.gradient_reduction_overlap.value = software.weight_gather_overlap.value = overlaps;
    config.software = std::make_shared<const TrainingSoftware>(software);
    const auto transfers = role_statistics(build_training(model, config).program, 0).transfers;
    EXPECT_DOUBLE_EQ(transfers.at("reduce_scatter dp").bytes.base(), 2 * 4 * kAdapter);
    EXPECT_DOUBLE_EQ(transfers.at("all_gather dp").bytes.base(), 2 * 4 * kAdapter);
  }
}

// Frozen weights are gathered whole and have no gradients; those of adapters are gathered and
// reduced with them.
TEST(FineTuning, OfShardedWeightsGathersAllAndReducesAdapters) {
  const LlmConfig model = small_llama(4);
  const TrainingConfig config = adapted({.dp = 4, .zero = 3});
  const Program program = build_training(model, config).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const auto transfers = role_statistics(program, 0).transfers;
  const double layers = 4 * (49152.0 + 2 * 64 + kAdapter), ends = 2 * 64 * 96 + 64;
  EXPECT_DOUBLE_EQ(transfers.at("all_gather dp").bytes.base(), 4 * 2 * (2 * layers + ends));
  EXPECT_DOUBLE_EQ(transfers.at("reduce_scatter dp").bytes.base(), 4 * 2 * 4 * kAdapter);
  const MemoryUse use = training_memory(model, config).front();
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * ((layers - 4 * kAdapter + ends) / 4 + 4 * kAdapter));
  EXPECT_DOUBLE_EQ(use.optimizer.base(), 12 * kAdapter);
  EXPECT_DOUBLE_EQ(use.gradients.base(), 2 * kAdapter);
}

TEST(FineTuning, OfAdaptersHoldsGradientsAndStatesOfThemAlone) {
  const LlmConfig model = small_llama(2);
  TrainingConfig config = adapted({.dp = 2});
  const MemoryUse use = training_memory(model, config).front();
  const double adapters = 2 * kAdapter;
  EXPECT_DOUBLE_EQ(use.weights.base(),
                   2 * (static_cast<double>(count_parameters(model).total) + adapters));
  EXPECT_DOUBLE_EQ(use.gradients.base(), 2 * adapters);
  EXPECT_DOUBLE_EQ(use.optimizer.base(), 12 * adapters / 2);
  const auto transfers = role_statistics(build_training(model, config).program, 0).transfers;
  EXPECT_DOUBLE_EQ(transfers.at("reduce_scatter dp").bytes.base(), 2 * adapters);
  // The same inputs as before, and 4 columns of each of 4 adapters; without an adapter none.
  const auto kept = [&] {
    return layer_activation_bytes(model, model.layers[0], rank_work(config)).base() / 32;
  };
  const double with_all = kept();
  config.lora->target_modules = {LoraModule::kQkvProj};
  EXPECT_DOUBLE_EQ(with_all - kept(), (64 + 192) * 2 + 3 * 4 * 2);
  config.lora.reset();
  EXPECT_DOUBLE_EQ(with_all - kept(), 4 * 4 * 2.0);
}

/// Layers of delta networks stay as they are: no adapters, no gradients of their weights, and no
/// inputs kept for these.
TEST(FineTuning, OfAHybridAdaptsItsAttention) {
  LlmConfig model = small_llama(2);
  model.delta_net = {.key_heads = 4, .value_heads = 4, .key_dim = 16, .value_dim = 16};
  model.layers[0].mixer = MixerKind::kDeltaNet;
  TrainingConfig config = adapted();
  config.lora->target_modules = {LoraModule::kQkvProj, LoraModule::kOProj};
  // Rank 4: 64 to 128 columns of queries, keys and values, and 64 to 64.
  const double adapters = 4 * (64 + 128.0) + 4 * (64 + 64);
  EXPECT_DOUBLE_EQ(training_memory(model, config).front().gradients.base(), 2 * adapters);
  const RankWork frozen = rank_work(config);
  const StepList steps = layer_backward(model, model.layers[0], frozen);
  for (const Step& step : steps.steps()) EXPECT_EQ(step.name().find("wgrad"), std::string::npos);
  config.lora.reset();
  // Of the delta layer: inputs of both its products and of both of its MLP.
  EXPECT_DOUBLE_EQ(layer_activation_bytes(model, model.layers[0], rank_work(config)).base() -
                       layer_activation_bytes(model, model.layers[0], frozen).base(),
                   32 * 2 * (64 + 64 + 64 + 192.0));
}

/// Samples of a sequence see nothing of each other.
TEST(FineTuning, PackedSamplesSeeThemselves) {
  const LlmConfig model = small_llama(2);
  TrainingConfig config = adapted();
  config.lora.reset();
  const double whole = executed(model, config);
  config.packed.mean = 8;
  // 4 samples of 36 pairs instead of 528, 8 heads, 4 x 8 FLOPs forward and 2.5 times that backward.
  EXPECT_DOUBLE_EQ(whole - executed(model, config), 4 * 2 * 8 * (528.0 - 4 * 36) * 32 * 3.5);
  // As long again: E[l^2] / E[l] is 16.
  config.packed.deviation = 8;
  EXPECT_EQ(config.packed.equal_samples(config.sequence), 2);
  EXPECT_LT(executed(model, config), whole);
}

/// Copies of embedding and head, 96 x 64 each, are trained whole beside the adapters.
constexpr double kTable = 96 * 64;
using Saved = std::vector<SavedModule>;

TrainingConfig saving(Saved modules, ParallelConfig parallel = {}) {
  TrainingConfig config = adapted(parallel);
  config.lora->modules_to_save = std::move(modules);
  return config;
}

// PEFT peft/utils/other.py, ModulesToSaveWrapper: the frozen original stays beside the copy.
TEST(FineTuning, OfSavedModulesHoldsCopiesWithGradientsAndStates) {
  const LlmConfig model = small_llama(2);
  for (const Saved& modules : {Saved{SavedModule::kEmbedTokens}, Saved{SavedModule::kLmHead},
                               Saved{SavedModule::kEmbedTokens, SavedModule::kLmHead}}) {
    const double elements = kTable * static_cast<double>(modules.size());
    const MemoryUse with = training_memory(model, saving(modules)).front();
    const MemoryUse without = training_memory(model, adapted()).front();
    EXPECT_DOUBLE_EQ(with.weights.base() - without.weights.base(), 2 * elements);
    EXPECT_DOUBLE_EQ(with.gradients.base() - without.gradients.base(), 2 * elements);
    // fp32 weights and both moments of Adam.
    EXPECT_DOUBLE_EQ(with.optimizer.base() - without.optimizer.base(), 12 * elements);
    for (const bool fp32 : {false, true}) {
      TrainingConfig config = saving(modules, {.tp = 2, .sp = fp32});
      EXPECT_THAT(verify(build_training(model, config, true).program), IsEmpty());
    }
  }
  // Ranks split tables over tp, and replicas share out states from zero 1 on.
  const auto states = [&](const TrainingConfig& config) {
    return training_memory(model, config).front().optimizer.base();
  };
  const Saved both = {SavedModule::kEmbedTokens, SavedModule::kLmHead};
  EXPECT_DOUBLE_EQ(states(saving(both, {.tp = 2})) - states(adapted({.tp = 2})), 12 * kTable);
  EXPECT_DOUBLE_EQ(
      states(saving(both, {.dp = 2, .zero = 1})) - states(adapted({.dp = 2, .zero = 1})),
      12 * kTable);
}

/// The head has its third product, the embedding its gradient; layers stay frozen.
TEST(FineTuning, OfSavedModulesComputesTheirGradients) {
  const LlmConfig model = small_llama(2);
  const double tokens = 4 * 32;
  const TrainingConfig head = saving({SavedModule::kLmHead});
  EXPECT_DOUBLE_EQ(executed(model, head) - executed(model, adapted()), 2 * tokens * kTable);
  EXPECT_DOUBLE_EQ((model_flops(model, head) - model_flops(model, adapted())).base(),
                   2 * tokens * kTable);
  const auto has = [&](const TrainingConfig& config, const std::string& name) {
    const Program program = build_training(model, config).program;
    return std::any_of(program.kernels.begin(), program.kernels.end(), [&](const Kernel& kernel) {
      return kernel.name.find(name) != std::string::npos;
    });
  };
  EXPECT_FALSE(has(adapted(), "embedding backward"));
  EXPECT_FALSE(has(adapted(), "head wgrad"));
  EXPECT_TRUE(has(saving({SavedModule::kEmbedTokens}), "embedding backward"));
  EXPECT_FALSE(has(saving({SavedModule::kEmbedTokens}), "head wgrad"));
  EXPECT_TRUE(has(head, "head wgrad"));
  EXPECT_FALSE(has(head, "qkv wgrad"));
}

TEST(FineTuning, OfSavedModulesReducesTheirGradients) {
  const LlmConfig model = small_llama(4);
  const Saved both = {SavedModule::kEmbedTokens, SavedModule::kLmHead};
  for (const int zero : {0, 1, 2, 3}) {
    for (const bool overlaps : {false, true}) {
      const auto bytes = [&](TrainingConfig config) {
        TrainingSoftware software;
        software.gradient_reduction_overlap.value = overlaps;
        software.weight_gather_overlap.value = overlaps;
        config.software = std::make_shared<const TrainingSoftware>(software);
        config.global_batch = 4;
        config.micro_batch = 1;
        const auto transfers = role_statistics(build_training(model, config).program, 0).transfers;
        return transfers.at(zero == 0 ? "all_reduce dp" : "reduce_scatter dp").bytes.base();
      };
      const ParallelConfig plan{.dp = 4, .zero = zero};
      EXPECT_DOUBLE_EQ(bytes(saving(both, plan)) - bytes(adapted(plan)), 2 * 2 * kTable)
          << zero << overlaps;
    }
  }
}

/// Copies of a tied table are two, which are not added up over stages.
TEST(FineTuning, OfSavedModulesUntiesTables) {
  LlmConfig model = small_llama(2);
  model.tied_embeddings = true;
  const Saved both = {SavedModule::kEmbedTokens, SavedModule::kLmHead};
  const MemoryUse with = training_memory(model, saving(both)).front();
  const MemoryUse without = training_memory(model, adapted()).front();
  EXPECT_DOUBLE_EQ(with.weights.base() - without.weights.base(), 2 * 2 * kTable);
  EXPECT_DOUBLE_EQ(with.optimizer.base() - without.optimizer.base(), 12 * 2 * kTable);
  const Program program = build_training(model, saving(both, {.pp = 2})).program;
  for (const Transfer& transfer : program.transfers)
    EXPECT_EQ(transfer.name.find("tied embedding"), std::string::npos);
}

TEST(FineTuning, SaysWhatIsNotModelled) {
  const auto message = [](const TrainingConfig& config, const LlmConfig& model) -> std::string {
    try {
      require_supported(model, config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(adapted(), small_llama(2)), "");
  EXPECT_THAT(message(adapted(), small_moe(2)), HasSubstr("adapters of experts"));
  TrainingConfig alone = saving({SavedModule::kLmHead});
  alone.layers_only = 1;
  EXPECT_THAT(message(alone, small_llama(2)), HasSubstr("neither embedding nor head"));
  TrainingConfig packed = adapted();
  packed.packed.mean = 64;
  EXPECT_THAT(message(packed, small_llama(2)), HasSubstr("do not fit into sequences of 32"));
}

}  // namespace
}  // namespace orrery::fine_tuning_test
