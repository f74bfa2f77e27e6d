// SPDX-License-Identifier: Apache-2.0
// Sharded gradients and weights (parallel.zero 2 and 3): what is moved and what is held.
#include "workloads/steps/training/sharded_weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::sharded_weights_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainingConfig config_of(ParallelConfig parallel, TrainingSoftware software = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.micro_batch = 2;
  config.global_batch = 4L * config.micro_batch * parallel.dp;  // 4 micro-batches
  config.sequence = 16;
  config.software = std::make_shared<const TrainingSoftware>(std::move(software));
  return config;
}

/// Bytes that one rank of the first stage calls collectives of a kind over replicas with.
double bytes_of(const LlmConfig& model, const TrainingConfig& config, const char* kind) {
  const auto transfers = role_statistics(build_training(model, config).program, 0).transfers;
  const auto found = transfers.find(std::string(kind) + " dp");
  return found == transfers.end() ? 0 : found->second.bytes.base();
}

double parameters(const LlmConfig& model) {
  return static_cast<double>(count_parameters(model).total);
}
/// Those of its layers, of 49152 in matrices and two norms of 64.
double layer_parameters_of(std::int64_t layers) { return static_cast<double>(layers) * 49280; }

TEST(ShardedWeights, AreGatheredBeforeEachPassAndGradientsReducedAfterEachBackwardPass) {
  const LlmConfig model = small_llama(4);
  const TrainingConfig config = config_of({.dp = 4, .zero = 3});
  ASSERT_EQ(layer_parameters_of(4) + 2 * 64 * 96 + 64, parameters(model));
  // Two bytes each; 4 forward passes of all, 4 backward passes of the layers.
  EXPECT_EQ(bytes_of(model, config, "all_gather"),
            2 * 4 * (parameters(model) + layer_parameters_of(4)));
  EXPECT_EQ(bytes_of(model, config, "reduce_scatter"), 2 * 4 * parameters(model));
  EXPECT_EQ(bytes_of(model, config, "all_reduce"), 0);
}

TEST(ShardedWeights, ThatStayAreGatheredOnceAPassOrWithStagesOnceAStep) {
  TrainingSoftware software;
  software.reshard_after_forward.value = false;
  const LlmConfig model = small_llama(4);
  EXPECT_EQ(bytes_of(model, config_of({.dp = 4, .zero = 3}, software), "all_gather"),
            2 * 4 * parameters(model));
  // The first stage has two layers and the embedding.
  const double stage = layer_parameters_of(2) + 64 * 96;
  EXPECT_EQ(bytes_of(model, config_of({.pp = 2, .dp = 4, .zero = 3}, software), "all_gather"),
            2 * stage);
}

TEST(ShardedGradients, AreReducedEachMicroBatchOrTheLastOne) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  EXPECT_EQ(bytes_of(model, config_of({.dp = 4, .zero = 2}, software), "reduce_scatter"),
            2 * 4 * parameters(model));
  EXPECT_EQ(bytes_of(model, config_of({.dp = 4, .zero = 2}, software), "all_gather"),
            2 * parameters(model));
  software.gradient_sync.value = GradientSync::kLast;
  EXPECT_EQ(bytes_of(model, config_of({.dp = 4, .zero = 2}, software), "reduce_scatter"),
            2 * parameters(model));
  software.main_gradients.value = GradientFormat::kFp32;
  EXPECT_EQ(bytes_of(model, config_of({.dp = 4, .zero = 3}, software), "reduce_scatter"),
            4 * parameters(model));
}

TEST(ShardedWeights, OfProductsMayBeGatheredInEightBits) {
  TrainingSoftware software;
  software.fp8_weight_gathers.value = true;
  TrainingConfig config = config_of({.dp = 4, .zero = 3}, software);
  config.precision = Precision::kFp8;
  const double norms = 4 * 2 * 64, ends = 2 * 64 * 96 + 64;
  const double narrow = layer_parameters_of(4) - norms;
  EXPECT_EQ(bytes_of(small_llama(4), config, "all_gather"),
            4 * (2 * (narrow + 2 * norms) + 2 * ends));
}

/// Bytes that kernels of that name move on a rank of the first stage.
double moved_by(const TrainingConfig& config, const std::string& name) {
  const Program program = build_training(small_llama(4), config).program;
  double bytes = 0;
  for (const BlockId called : program.roles.front().calls) {
    const OperatorGraph& block = program.blocks[called];
    for (OperatorId id = 0; id < block.size(); ++id) {
      if (block[id].kind != OperatorKind::kCompute) continue;
      const Kernel& kernel = program.kernels[block[id].work];
      if (kernel.name == name) bytes += (kernel.read + kernel.written).base();
    }
  }
  return bytes;
}

// Two bytes are read for the largest value and again for the cast, which writes one.
TEST(ShardedWeights, GatheredWideAreCastInEveryPassByCurrentScales) {
  const double cast = layer_parameters_of(4) - 4 * 2 * 64;  // not the norms, nor the ends
  TrainingSoftware software;
  software.fp8_scaling.value = NarrowScaling::kCurrent;
  software.keeps_narrow_inputs.value = false;
  TrainingConfig config = config_of({.dp = 4, .zero = 3}, software);
  for (const Precision narrow : {Precision::kFp8, Precision::kInt8}) {
    config.precision = narrow;
    EXPECT_EQ(moved_by(config, "gathered weights largest"), 4 * 2 * 2 * cast);
    EXPECT_EQ(moved_by(config, "gathered weights cast"), 4 * 2 * 3 * cast);
  }
  config.precision = Precision::kBf16;
  EXPECT_EQ(moved_by(config, "gathered weights cast"), 0);
}

TEST(ShardedWeights, GatheredNarrowOrKeptAsTheyWereCastAreNotCastAgain) {
  for (const bool gathers : {true, false}) {
    TrainingSoftware software;
    software.fp8_scaling.value = NarrowScaling::kCurrent;
    software.fp8_weight_gathers.value = gathers;
    software.keeps_narrow_inputs.value = !gathers;
    TrainingConfig config = config_of({.dp = 4, .zero = 3}, software);
    config.precision = Precision::kFp8;
    EXPECT_EQ(moved_by(config, "gathered weights cast"), 0);
  }
}

// Copies of shards are added up over the ranks that hold the same: a share of the gradients.
TEST(Hsdp, ReducesInsideACopyAndThenAcrossCopies) {
  const LlmConfig model = small_llama(4);
  const TrainingConfig config = config_of({.dp = 8, .zero = 3, .dp_shard = 4});
  EXPECT_EQ(bytes_of(model, config, "reduce_scatter"), 2 * 4 * parameters(model));
  EXPECT_EQ(bytes_of(model, config, "all_reduce"), 2 * 4 * parameters(model) / 4);
  for (const Transfer& transfer : build_training(model, config).program.transfers) {
    if (transfer.purpose != "dp") continue;
    const bool across = transfer.kind == TransferKind::kAllReduce;
    EXPECT_EQ(transfer.groups.size(), across ? 4u : 2u) << transfer.name;
    EXPECT_EQ(transfer.groups.back(), across ? std::vector({3, 7}) : std::vector({4, 5, 6, 7}));
  }
}

TEST(ShardedWeights, AreSoundUnderEveryParallelism) {
  for (const int zero : {2, 3}) {
    const ParallelConfig plans[] = {
        {.tp = 4, .sp = true, .dp = 2, .zero = zero},
        {.tp = 2, .sp = true, .pp = 4, .dp = 2, .ep = 4, .zero = zero},
        {.tp = 2, .sp = true, .pp = 2, .vpp = 2, .dp = 4, .ep = 2, .zero = zero, .dp_shard = 2},
    };
    for (const ParallelConfig& plan : plans) {
      for (LlmConfig model : {small_llama(4), small_moe(4)}) {
        if (!model.has_moe() && plan.ep > 1) continue;
        for (const bool tied : {false, true}) {
          for (const bool drops : {false, true}) {
            TrainingSoftware software;
            software.reshard_after_forward.value = drops;
            software.weight_shards.value = WeightShards::kMaster;
            software.gather_copies.value = software.reduction_copies.value = Fusion::kApart;
            model.tied_embeddings = tied;
            EXPECT_THAT(verify(build_training(model, config_of(plan, software)).program),
                        IsEmpty());
          }
        }
      }
    }
  }
}

// A layer has four matrices (queries with keys and values, output, gate with up, down) and two
// norms. Weights of a forward pass of 4 layers and the ends: 4 x 4 + 2 matrices, gradients 9 norms
// more; norms are gathered once.
TEST(ShardedWeights, TakeTheHostAsManyLaunchesAsTheyHavePartsOfRanks) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  software.gather_copies.value = software.reduction_copies.value = Fusion::kApart;
  software.launch_issue.value = Seconds(1e-6);
  TrainingConfig config = config_of({.dp = 4, .zero = 3}, software);
  config.global_batch = config.micro_batch * 4;
  std::map<std::string, double> parts;
  const Program program = build_training(model, config).program;
  for (const BlockId called : program.roles.front().calls) {
    const OperatorGraph& block = program.blocks[called];
    for (OperatorId id = 0; id < block.size(); ++id) {
      if (block[id].kind != OperatorKind::kCompute) continue;
      const Kernel& kernel = program.kernels[block[id].work];
      parts[kernel.name] += kernel.issue.base() / 1e-6;
    }
  }
  EXPECT_NEAR(parts["gathered weights copy"], 4 * (18 + 16), 1e-6);
  EXPECT_NEAR(parts["gradient copy"], 4 * (18 + 9), 1e-6);
  EXPECT_NEAR(parts["kept weights copy"], 4 * 9, 1e-6);
}

TEST(ShardedWeights, ByTensorMoveTheSameBytesInAsManyCollectives) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  const auto collectives = [&](const char* kind) {
    const Program program =
        build_training(model, config_of({.dp = 4, .zero = 3}, software)).program;
    return role_statistics(program, 0).transfers.at(std::string(kind) + " dp");
  };
  const auto gathers = collectives("all_gather"), reductions = collectives("reduce_scatter");
  software.tensor_collectives.value = true;
  EXPECT_NEAR(collectives("all_gather").bytes.base(), gathers.bytes.base(), 1e-6);
  EXPECT_NEAR(collectives("reduce_scatter").bytes.base(), reductions.bytes.base(), 1e-6);
  // Of four micro-batches: four matrices of each layer and those of the ends both ways.
  EXPECT_EQ(collectives("all_gather").count, 4 * (18 + 16));
}

// All matrices of a layer but the last, 64 x 192.
TEST(ShardedWeights, OfRecomputedLayersAreGatheredOnceMore) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  software.regathers_recomputed.value = true;
  const TrainingConfig kept = config_of({.dp = 4, .zero = 3});
  TrainingConfig config = config_of({.dp = 4, .zero = 3}, software);
  EXPECT_EQ(bytes_of(model, config, "all_gather"), bytes_of(model, kept, "all_gather"));
  config.recompute = Recompute::kFull;
  EXPECT_EQ(bytes_of(model, config, "all_gather") - bytes_of(model, kept, "all_gather"),
            2 * 4 * (layer_parameters_of(4) - 4.0 * 64 * 192));
}

TEST(WholeReduction, IsAnAllReduceWhereShardsAreOfTheOptimizerAlone) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  software.whole_reduction.value = true;
  const TrainingConfig config = config_of({.dp = 4, .zero = 1}, software);
  EXPECT_EQ(bytes_of(model, config, "all_reduce"), 2 * parameters(model));
  EXPECT_EQ(bytes_of(model, config, "reduce_scatter"), 0);
  EXPECT_EQ(bytes_of(model, config, "all_gather"), 2 * parameters(model));
}

// Rajbhandari et al. 2020, figure 1: 7.5 B parameters over 64 ranks.
TEST(ShardedWeights, StatesAreThoseOfTheZeroPaper) {
  const LlmConfig model = megatron_gpt(37, 4096, 32);
  const double billions = parameters(model) / 1e9;
  ASSERT_NEAR(billions, 7.67, 0.01);
  const auto states = [&](int zero) {
    TrainingConfig config = config_of({.dp = 64, .zero = zero});
    const MemoryUse use = training_memory(model, config).front();
    return (use.weights + use.gradients + use.optimizer).base() / 1e9 / billions * 7.5;
  };
  EXPECT_NEAR(states(0), 120, 0.1);
  EXPECT_NEAR(states(1), 31.4, 0.1);
  EXPECT_NEAR(states(2), 16.6, 0.1);
  EXPECT_NEAR(states(3), 1.88, 0.01);
}

TEST(ShardedWeights, MasterWeightsAreTheirOwnShards) {
  const LlmConfig model = small_llama(4);
  TrainingSoftware software;
  software.weight_shards.value = WeightShards::kMaster;
  software.main_gradients.value = GradientFormat::kFp32;
  const MemoryUse use = training_memory(model, config_of({.dp = 4, .zero = 3}, software)).front();
  EXPECT_EQ((use.weights + use.gradients + use.optimizer).base(), 16 * parameters(model) / 4);
}

// Beside its shards a rank holds the ends and two layers, or all where they stay.
TEST(ShardedWeights, HoldTwoLayersWhereTheyAreDropped) {
  const LlmConfig model = small_llama(8);
  const auto whole = [&](bool drops, bool ahead) {
    TrainingSoftware software;
    software.reshard_after_forward.value = drops;
    software.forward_prefetch.value = software.backward_prefetch.value = ahead;
    return unit_weights(model, config_of({.dp = 4, .zero = 3}, software), 0).base();
  };
  const double ends = 2 * 64 * 96 + 64;
  EXPECT_EQ(whole(true, true), 2 * (ends + layer_parameters_of(2)));
  EXPECT_EQ(whole(true, false), 2 * (ends + layer_parameters_of(1)));
  EXPECT_EQ(whole(false, true), 2 * (ends + layer_parameters_of(8)));
}

TEST(ShardedWeights, SayWhatIsWrong) {
  const auto message = [](const LlmConfig& model, const TrainingConfig& config) -> std::string {
    try {
      require_supported(model, config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  const LlmConfig model = small_llama(4);
  EXPECT_THAT(message(model, config_of({.dp = 8, .zero = 3, .dp_shard = 3})),
              HasSubstr("parallel.dp_shard"));
  EXPECT_THAT(message(model, config_of({.dp = 8, .zero = 0, .dp_shard = 4})),
              HasSubstr("parallel.dp_shard"));
  EXPECT_THAT(message(small_moe(4), config_of({.dp = 8, .ep = 8, .zero = 3, .dp_shard = 4})),
              HasSubstr("1 replicas of experts"));
  TrainingSoftware software;
  software.selective_recompute.value = SelectiveRecompute::kEverySecondProduct;
  TrainingConfig config = config_of({}, software);
  config.recompute = Recompute::kSelective;
  EXPECT_EQ(message(model, config), "");
  EXPECT_THAT(message(small_moe(4), config), HasSubstr("every_second_product"));
}

// Of 49152 elements of products a layer computes keys (64 x 32), outputs (64 x 64) and up (64 x
// 192) again, in 8 bits all but down.
TEST(SelectiveRecomputation, ByOperatorRepeatsEverySecondProduct) {
  TrainingSoftware software;
  software.selective_recompute.value = SelectiveRecompute::kEverySecondProduct;
  const LlmConfig model = small_llama(4);
  const auto flops = [&](Recompute recompute, Precision precision) {
    TrainingConfig config = config_of({}, software);
    config.recompute = recompute;
    config.precision = precision;
    return program_statistics(build_training(model, config).program).matrix_flops().base();
  };
  const double tokens = 8 * 16;
  for (const auto& [precision, elements] : {std::pair(Precision::kBf16, 64.0 * (32 + 64 + 192)),
                                            std::pair(Precision::kFp8, 49152.0 - 64 * 192)}) {
    EXPECT_DOUBLE_EQ(flops(Recompute::kSelective, precision) - flops(Recompute::kNone, precision),
                     2 * tokens * 4 * elements);
  }
}

TEST(SelectiveRecomputation, ByOperatorRepeatsTheHalfThatALayerHas) {
  TrainingSoftware software;
  software.selective_recompute.value = SelectiveRecompute::kEverySecondProduct;
  const auto names = [&](MixerKind mixer, bool feeds) {
    LlmConfig model = small_llama(1);
    model.layers[0].mixer = mixer;
    model.layers[0].feeds = feeds;
    RankWork work;
    work.batch.phase = Phase::kTraining;
    work.passes.recompute = Recompute::kSelective;
    work.software = std::make_shared<const TrainingSoftware>(software);
    const StepList again = layer_again(model, model.layers[0], work);
    std::vector<std::string> all;
    for (const Step& step : again.steps()) all.push_back(step.name());
    return all;
  };
  std::vector<std::string> both = names(MixerKind::kAttention, false);
  const std::vector<std::string> mlp = names(MixerKind::kNone, true);
  EXPECT_FALSE(mlp.empty());
  both.insert(both.end(), mlp.begin(), mlp.end());
  EXPECT_EQ(both, names(MixerKind::kAttention, true));
}

// The last product of a layer is 64 x 192.
TEST(FullRecomputation, ThatStopsEarlyLeavesTheLastProductOut) {
  const LlmConfig model = small_llama(4);
  const auto flops = [&](bool early) {
    TrainingSoftware software;
    software.recompute_stops_early.value = early;
    TrainingConfig config = config_of({}, software);
    config.recompute = Recompute::kFull;
    return program_statistics(build_training(model, config).program).matrix_flops().base();
  };
  EXPECT_DOUBLE_EQ(flops(false) - flops(true), 2.0 * 8 * 16 * 4 * 64 * 192);
}

}  // namespace
}  // namespace orrery::sharded_weights_test
