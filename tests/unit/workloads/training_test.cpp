// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/training.h"
#include "workloads/software/training_software.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::training_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TrainingConfig small_config(ParallelConfig parallel = {}) {
  TrainingConfig config;
  config.parallel = parallel;
  config.micro_batch = 2;
  config.global_batch = 8L * config.micro_batch * parallel.dp;
  config.sequence = 16;
  return config;
}

TEST(BuildTraining, IsSoundUnderEveryParallelism) {
  const ParallelConfig plans[] = {
      {},
      {.tp = 2},
      {.tp = 4, .sp = true, .dp = 2},
      {.tp = 2, .sp = true, .pp = 4, .dp = 2, .ep = 4},
      {.tp = 2, .sp = true, .pp = 2, .vpp = 2, .dp = 4, .ep = 2, .zero = 0},
  };
  for (const ParallelConfig& plan : plans) {
    for (LlmConfig model : {small_llama(4), small_moe(4)}) {
      if (!model.has_moe() && plan.ep > 1) continue;
      if (model.has_moe() && plan.tp > 1 && !plan.sp) continue;
      for (const bool tied : {false, true}) {
        model.tied_embeddings = tied;
        const Program program = build_training(model, small_config(plan)).program;
        EXPECT_THAT(verify(program), IsEmpty());
        EXPECT_EQ(program.ranks, plan.ranks());
        EXPECT_EQ(program.roles.size(), static_cast<std::size_t>(plan.pp));
      }
    }
  }
}

TEST(BuildTraining, ExecutesSixFlopsPerParameterAndTokenPlusAttention) {
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.tp = 4, .sp = true},
                                     ParallelConfig{.tp = 2, .pp = 4, .dp = 2}}) {
    const LlmConfig model = small_llama(4);
    const TrainingConfig config = small_config(plan);
    const double tokens = static_cast<double>(config.global_batch * config.sequence);
    // Matrices: 4 layers of 49152 elements (see layers_test) and the head, 64 x 96.
    const double matrices = 4 * 49152.0 + 64 * 96;
    // 136 pairs a sequence and head, 4 x 8 FLOPs forward and 2.5 times that backward.
    const double attention =
        static_cast<double>(config.global_batch) * 4 * 8 * 136 * 32 * (1 + 2.5);
    const double executed =
        program_statistics(build_training(model, config).program).matrix_flops().base();
    EXPECT_DOUBLE_EQ(executed, 6 * matrices * tokens + attention);
    // The model needs half of the square (128 pairs), three times.
    EXPECT_DOUBLE_EQ(
        model_flops(model, config).base(),
        6 * matrices * tokens + 3.0 * static_cast<double>(config.global_batch) * 4 * 8 * 128 * 32);
  }
}

TEST(BuildTraining, FullRecomputeAddsAForwardPassOfTheLayers) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = small_config({.tp = 2, .pp = 2});
  const auto executed = [&] {
    return program_statistics(build_training(model, config).program).matrix_flops().base();
  };
  const double plain = executed();
  config.recompute = Recompute::kFull;
  const double tokens = static_cast<double>(config.global_batch * config.sequence);
  const double attention = static_cast<double>(config.global_batch) * 4 * 8 * 136 * 32;
  EXPECT_DOUBLE_EQ(executed() - plain, 2 * 4 * 49152.0 * tokens + attention);
  EXPECT_LT(model_flops(model, config).base(), plain);
}

TEST(BuildTraining, SendsEveryMicroBatchOverEveryBoundary) {
  TrainingConfig config = small_config({.tp = 2, .pp = 4});
  const auto messages = [&](const ParallelConfig& plan) {
    config.parallel = plan;
    return program_statistics(build_training(small_llama(8), config).program)
        .transfers.at("send_receive pp");
  };
  // 3 boundaries, forward and backward, 8 micro-batches, 2 tensor ranks; 2 x 16 tokens of 64 bf16
  // elements.
  const ClassStatistics plain = messages({.tp = 2, .pp = 4});
  EXPECT_EQ(plain.count, 3u * 2 * 8 * 2);
  EXPECT_EQ(plain.bytes.base(), 96 * 32.0 * 64 * 2);
  EXPECT_EQ(messages({.tp = 2, .sp = true, .pp = 4}).bytes.base(), plain.bytes.base() / 2);
  EXPECT_EQ(messages({.tp = 2, .pp = 4, .vpp = 2}).count, 7u * 2 * 8 * 2);
}

TEST(BuildTraining, ExchangesEveryTokenCopyFourTimesPerLayer) {
  const LlmConfig model = small_moe(4);
  const TrainingConfig config = small_config({.tp = 2, .sp = true, .pp = 2, .dp = 2, .ep = 4});
  const auto transfers = program_statistics(build_training(model, config).program).transfers;
  // Dispatch and combine, forward and backward, of 2 copies of 64 bf16 elements per token and
  // layer.
  const double tokens = static_cast<double>(config.global_batch * config.sequence);
  EXPECT_DOUBLE_EQ(transfers.at("dispatch ep").bytes.base(), 2 * tokens * 4 * 2 * 64 * 2);
  EXPECT_DOUBLE_EQ(transfers.at("combine ep").bytes.base(), 2 * tokens * 4 * 2 * 64 * 2);
}

TEST(BuildTraining, ReducesEveryGradientOverItsReplicas) {
  const LlmConfig model = small_llama(4);
  const auto statistics = [&](const ParallelConfig& plan) {
    return role_statistics(build_training(model, small_config(plan)).program, 0);
  };
  const auto parameters = static_cast<double>(count_parameters(model).total);
  const ProgramStatistics sharded = statistics({.dp = 4});
  EXPECT_EQ(sharded.transfers.at("reduce_scatter dp").bytes.base(), 2 * parameters);
  EXPECT_EQ(sharded.transfers.at("all_gather dp").bytes.base(), 2 * parameters);
  const ProgramStatistics copied = statistics({.dp = 4, .zero = 0});
  EXPECT_EQ(copied.transfers.at("all_reduce dp").bytes.base(), 2 * parameters);
  EXPECT_FALSE(copied.transfers.contains("all_gather dp"));
  // All state passes: the shard's 54 bytes a parameter (preparation 18, Adam 28, cast 8) and 4 for
  // the scaling of all.
  EXPECT_NEAR(sharded.kernels.at("optimizer").bytes.base(), parameters * (54.0 / 4 + 4), 60);
  EXPECT_DOUBLE_EQ(copied.kernels.at("optimizer").bytes.base(), parameters * 58);
}

TEST(BuildTraining, ReducesExpertGradientsOverTheirOwnReplicas) {
  const LlmConfig model = small_moe(2);
  const ParallelConfig plan{.dp = 8, .ep = 4};
  const Program program = build_training(model, small_config(plan)).program;
  double experts = 0;
  for (const Transfer& transfer : program.transfers) {
    if (!transfer.name.starts_with("expert gradients")) continue;
    experts = transfer.bytes.base();
    EXPECT_EQ(transfer.groups.size(), 4u);
    EXPECT_THAT(transfer.groups[1], ::testing::ElementsAre(1, 5));
  }
  EXPECT_EQ(experts, 2 * 2.0 * (8 / 4) * 3 * 64 * 32);  // 2 layers, 2 of 8 experts, bf16
}

TEST(BuildTraining, TiesTheEmbeddingsOfFirstAndLastStage) {
  LlmConfig model = small_llama(4);
  model.tied_embeddings = true;
  const Program program = build_training(model, small_config({.tp = 2, .pp = 4})).program;
  const auto tie = std::find_if(program.transfers.begin(), program.transfers.end(),
                                [](const Transfer& t) { return t.purpose == "embedding"; });
  ASSERT_NE(tie, program.transfers.end());
  EXPECT_EQ(tie->participants, 2);
  EXPECT_EQ(tie->bytes.base(), 2.0 * 96 / 2 * 64);
  EXPECT_THAT(tie->groups,
              ::testing::ElementsAre(::testing::ElementsAre(0, 6), ::testing::ElementsAre(1, 7)));
}

/// A projection of two hidden states to one, a layer, and the head once more (DeepSeek-V3, arXiv
/// 2412.19437, section 2.2), three times as many FLOPs with the backward pass.
TEST(BuildTraining, ModulesOfMultiTokenPredictionAreALayerAProjectionAndTheHead) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config;
  config.parallel = {.tp = 2, .sp = true, .pp = 2};
  config.global_batch = 4;
  config.sequence = 64;
  const Program without = build_training(model, config).program;
  const double flops = model_flops(model, config).base();
  config.mtp = 2;
  const Program with = build_training(model, config).program;
  EXPECT_THAT(verify(with), IsEmpty());
  const auto hidden = static_cast<double>(model.hidden);
  LlmConfig layer = small_llama(1);
  const double tokens = 4 * 64;
  const double module =
      3 * tokens * (model_flops_per_token(layer, 64, true).base() + 4 * hidden * hidden);
  EXPECT_DOUBLE_EQ(model_flops(model, config).base() - flops, 2 * module);
  const auto ran = [](const Program& program) {
    return program_statistics(program).matrix_flops().base();
  };
  config.mtp = 0;
  const double two_layers = ran(build_training(small_llama(6), config).program) - ran(without);
  const double head = 3 * tokens * 2 * hidden * static_cast<double>(model.vocabulary);
  EXPECT_DOUBLE_EQ(ran(with) - ran(without),
                   two_layers + 2 * (3 * tokens * 4 * hidden * hidden + head));
  EXPECT_GT(role_statistics(with, 1).matrix_flops(), role_statistics(without, 1).matrix_flops());
  EXPECT_EQ(role_statistics(with, 0).matrix_flops(), role_statistics(without, 0).matrix_flops());
}

TEST(BuildTraining, ModulesHoldAProjectionALayerThreeNormsAndACopyOfTheEmbedding) {
  const LlmConfig model = small_llama(4);
  const ParallelConfig plan{.tp = 2, .sp = true, .pp = 2};
  const Placement placement = Placement::round_robin(2, 1);
  const RankParameters one = stage_parameters(model, plan, placement, 1, {true, 1}) -
                             stage_parameters(model, plan, placement, 1);
  RankParameters expected = layer_parameters(model, model.layers[0], plan);
  expected += embedding_parameters(model, 2);
  EXPECT_EQ(one.split, expected.split + 2 * model.hidden * model.hidden / 2);
  EXPECT_EQ(one.whole, expected.whole + 3 * model.hidden);
}

/// Behind a slice of modules, hidden states of each of them go on to the head.
TEST(BuildTraining, ModulesOnAStageOfTheirOwnSendTheirStatesToTheHead) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config;
  config.parallel = {.pp = 4, .layout = {.slices = "Ett|tt|m|L"}};
  config.global_batch = 8;
  config.sequence = 64;
  config.mtp = 1;
  const Program program = build_training(model, config).program;
  EXPECT_THAT(verify(program), IsEmpty());
  const auto bytes_of = [&](const std::string& name) {
    for (const Transfer& transfer : program.transfers)
      if (transfer.name == name) return transfer.bytes.base();
    return 0.0;
  };
  EXPECT_EQ(bytes_of("forward 2->3"), 2 * bytes_of("forward 1->2"));
  EXPECT_EQ(bytes_of("backward 3->2"), 2 * bytes_of("backward 2->1"));
  EXPECT_EQ(bytes_of("tied embedding all_reduce"),
            static_cast<double>(embedding_parameters(model, 1).split) *
                config.software->gradient_bytes(config.precision));
}

TEST(BuildTraining, LayersOnlyHasNothingElse) {
  TrainingConfig config = small_config({.tp = 2});
  config.layers_only = 3;
  const TrainingProgram training = build_training(small_llama(8), config);
  const ProgramStatistics statistics = program_statistics(training.program);
  EXPECT_FALSE(statistics.kernels.contains("embedding"));
  EXPECT_FALSE(statistics.kernels.contains("optimizer"));
  EXPECT_TRUE(training.optimizer.empty());
  const double tokens = static_cast<double>(config.global_batch * config.sequence);
  const double attention = static_cast<double>(config.global_batch) * 3 * 8 * 136 * 32 * 3.5;
  EXPECT_DOUBLE_EQ(statistics.matrix_flops().base(), 6 * 3 * 49152.0 * tokens + attention);
  EXPECT_NEAR(model_flops(small_llama(8), config).base() / statistics.matrix_flops().base(), 1,
              0.01);
}

TEST(BuildTraining, SharesKernelsAndTransfersBetweenLayersAndStages) {
  const LlmConfig model = library_model("llama_3_1_405b");
  TrainingConfig config;
  config.parallel = {.tp = 8, .sp = true, .pp = 9, .dp = 2};
  config.global_batch = 64;
  config.sequence = 8192;
  const Program program = build_training(model, config).program;
  EXPECT_LT(program.kernels.size(), 60u);
  EXPECT_LT(program.transfers.size(), 120u);
  EXPECT_EQ(program.roles[0].calls.size(), 2u * 32 + 1);
}

TEST(TrainingConfig, SaysWhatIsWrong) {
  const auto message = [](const LlmConfig& model, TrainingConfig config) -> std::string {
    try {
      require_supported(model, config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  TrainingConfig config = small_config();
  EXPECT_EQ(message(small_llama(4), config), "");
  config.global_batch = 3;
  EXPECT_THAT(message(small_llama(4), config), HasSubstr("batch.global: 3 sequences"));
  config = small_config({.pp = 2, .vpp = 2});
  config.global_batch = 6;
  EXPECT_THAT(message(small_llama(4), config),
              HasSubstr("interleaved needs micro-batches in multiples of 2, got 3"));
  config = small_config({.pp = 2, .vpp = 2});
  EXPECT_THAT(message(small_llama(6), config), HasSubstr("6 layers do not divide by pp * vpp = 4"));
  config.schedule = "1f1b";
  EXPECT_THAT(message(small_llama(4), config),
              HasSubstr("schedule 1f1b has 1 chunk of layers per stage, got parallel.vpp = 2"));
  config.schedule = "zigzag";
  EXPECT_THAT(message(small_llama(4), config), HasSubstr("unknown schedule 'zigzag'"));
  EXPECT_THAT(message(small_moe(4), small_config({.tp = 2})), HasSubstr("parallel.sp"));
  EXPECT_THAT(message(small_llama(4), small_config({.pp = 5})), HasSubstr("5 pipeline stages"));
  config = small_config();
  config.layers_only = 5;
  EXPECT_THAT(message(small_llama(4), config), HasSubstr("layers_only"));
}

}  // namespace
}  // namespace orrery::training_test
