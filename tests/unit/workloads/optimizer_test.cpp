// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/training/optimizer_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/figures/statistics.h"
#include "workloads/steps/training/muon.h"
#include "workloads/steps/training/training.h"

namespace orrery::optimizer_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Split = MatrixSplit;

TrainingConfig config_of(const ParallelConfig& plan, OptimizerKind optimizer) {
  TrainingConfig config;
  config.parallel = plan;
  config.global_batch = 8;
  config.sequence = 16;
  config.optimizer = optimizer;
  return config;
}

/// Norms are vectors, all else of these layers are matrices.
TEST(Muon, UpdatesAllMatricesOfALayerAndNothingElse) {
  const auto vectors = [](const LlmConfig& model, const ParallelConfig& plan) {
    const LayerConfig& layer = model.layers.front();
    double elements = 0;
    for (const MuonMatrix& matrix : layer_matrices(model, layer, plan))
      elements += matrix.elements();
    return static_cast<double>(layer_parameters(model, layer, plan).total()) - elements;
  };
  for (const int tp : {1, 2, 4}) {
    const ParallelConfig plan{.tp = tp, .sp = tp > 1, .dp = 4};
    EXPECT_EQ(vectors(small_llama(1), plan), 2 * 64);
    EXPECT_EQ(vectors(small_moe(1), {.tp = tp, .sp = tp > 1, .dp = 4, .ep = 2}), 2 * 64);
  }
  const LlmConfig latent = library_model("deepseek_v3");
  // Two norms, those of both latents, and a bias of the router for each expert.
  LlmConfig experts = latent;
  experts.layers = {latent.layers.back()};
  EXPECT_EQ(vectors(experts, {.dp = 8, .ep = 8}), 2 * 7168 + 1536 + 512 + 256);
}

/// Matrices that a product joins are apart, as those of queries, keys and values: five of mixtures,
/// of which version 6 of RWKV has a second matrix each.
TEST(Muon, UpdatesTheMatricesOfEveryMixerThatTrains) {
  for (const char* name : {"rwkv_6_7b", "rwkv_7_1_5b", "qwen3_next_80b_a3b", "nemotron_h_56b"}) {
    const LlmConfig model = library_model(name);
    for (const LayerConfig& layer : model.layers) {
      const Mixer* mixer = mixer_of(model, layer);
      if (mixer == nullptr) continue;
      LayerConfig alone = layer;
      alone.feeds = false;
      double elements = 0;
      for (const MuonMatrix& matrix : layer_matrices(model, alone, {.tp = 2}))
        elements += matrix.elements();
      EXPECT_EQ(elements,
                static_cast<double>(mixer->weights(model, layer, 2).parameters().matrices()));
    }
  }
  const LlmConfig rwkv = library_model("rwkv_6_7b");
  const auto matrices = layer_matrices(rwkv, rwkv.layers.front(), {});
  EXPECT_EQ(std::count(matrices.begin(), matrices.end(),
                       MuonMatrix{rwkv.hidden, rwkv.rwkv.mix_rank, Split::kNone}),
            5);
}

TEST(Muon, RefusesMatricesThatLayersShare) {
  TrainingConfig config = config_of({.dp = 8}, OptimizerKind::kMuon);
  EXPECT_THROW(build_training(library_model("zamba2_7b"), config), config::KeyError);
  config.optimizer = OptimizerKind::kAdam;
  EXPECT_NO_THROW(build_training(library_model("zamba2_7b"), config));
}

/// Rows are outputs: queries 64 x 64 and keys 32 x 64 split over tp, the gate and up of 192.
TEST(Muon, TakesQueriesKeysValuesAndBothMatricesOfTheMlpApart) {
  const LlmConfig model = small_llama(1);
  EXPECT_THAT(layer_matrices(model, model.layers[0], {.tp = 2}),
              ElementsAre(MuonMatrix{32, 64, Split::kColumns}, MuonMatrix{16, 64, Split::kColumns},
                          MuonMatrix{16, 64, Split::kColumns}, MuonMatrix{64, 32, Split::kRows},
                          MuonMatrix{192, 64, Split::kColumns}, MuonMatrix{64, 96, Split::kRows}));
}

/// Gram matrices are of the shorter side, or of the one that ranks have whole where they add up.
TEST(Muon, ModesOfTensorParallelismGatherAddUpOrDoNeither) {
  const MuonMatrix wide{32, 64, Split::kColumns};
  const NewtonSchulz alone = newton_schulz(wide, MuonTensorMode::kBlockwise, 4);
  EXPECT_EQ(alone.m, 32);
  EXPECT_EQ(alone.n, 64);
  EXPECT_EQ(alone.gathered + alone.summed, 0);
  const NewtonSchulz whole = newton_schulz(wide, MuonTensorMode::kDuplicated, 4);
  EXPECT_EQ(whole.m, 64);
  EXPECT_EQ(whole.n, 128);
  EXPECT_EQ(whole.gathered, 4 * 128 * 64);
  const NewtonSchulz part = newton_schulz(wide, MuonTensorMode::kDistributed, 4);
  EXPECT_EQ(part.m, 64);
  EXPECT_EQ(part.n, 32);
  EXPECT_EQ(part.summed, 2 * 64 * 64);
}

/// 4 m^2 n + 2 m^3 FLOPs an iteration: of a layer with Q and O of 64 x 64, K and V of 32 x 64, gate
/// and up of 384 x 64, down of 64 x 192.
TEST(Muon, HasTheFlopsOfItsIterations) {
  const auto flops = [](double m, double n) { return 4 * m * m * n + 2 * m * m * m; };
  const double layer = 2 * flops(64, 64) + 2 * flops(32, 64) + flops(64, 384) + flops(64, 192);
  const auto ran = [](int steps, OptimizerKind optimizer) {
    TrainingConfig config = config_of({.zero = 0}, optimizer);
    config.muon.num_ns_steps = steps;
    const Program program = build_training(small_llama(3), config).program;
    EXPECT_THAT(verify(program), IsEmpty());
    return program_statistics(program).matrix_flops().base();
  };
  const double adam = ran(5, OptimizerKind::kAdam);
  EXPECT_EQ(ran(5, OptimizerKind::kMuon) - adam, 5 * 3 * layer);
  EXPECT_EQ(ran(2, OptimizerKind::kMuon) - adam, 2 * 3 * layer);
}

/// A master weight and a momentum of matrices, 12 bytes of embedding, head and norms.
TEST(Muon, KeepsAMomentumOfMatricesAndTheStatesOfAdamOfTheRest) {
  const LlmConfig model = small_llama(4);
  const double matrices = 4 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 192.0);
  const double all = static_cast<double>(count_parameters(model).total);
  const auto state = [&](int dp, int zero, OptimizerKind optimizer) {
    return optimizer_state(model, config_of({.dp = dp, .zero = zero}, optimizer), 0).base();
  };
  EXPECT_EQ(state(1, 0, OptimizerKind::kMuon), 8 * matrices + 12 * (all - matrices));
  EXPECT_EQ(state(1, 0, OptimizerKind::kAdam), 12 * all);
  EXPECT_EQ(state(1, 0, OptimizerKind::kSgd), 8 * all);
  // Four layers over two replicas: halves.
  EXPECT_EQ(state(2, 1, OptimizerKind::kMuon), (8 * matrices + 12 * (all - matrices)) / 2);
  // 24 matrices, of which the four largest go to four of eight replicas alone.
  EXPECT_EQ(state(8, 1, OptimizerKind::kMuon) - 12 * (all - matrices) / 8, 8 * 2 * 64 * 192.0);
}

/// Adam of a 16-bit weight: 12 bytes as usual, 8 without master weights and with moments of 16 bits
/// less (LLM.Q trains so), and bitsandbytes' blocks of 256 values with a scale of 4 bytes each.
TEST(OptimizerStates, TakeTheBytesOfTheirFormats) {
  const LlmConfig model = small_llama(4);
  const auto parameters = static_cast<double>(count_parameters(model).total);
  TrainingConfig config = config_of({.zero = 0}, OptimizerKind::kAdam);
  OptimizerStates& states = config.optimizer_states;
  const auto kept = [&] { return optimizer_state(model, config, 0).base() / parameters; };
  EXPECT_DOUBLE_EQ(kept(), 12);
  states.momentum = MomentFormat::kBf16;
  EXPECT_DOUBLE_EQ(kept(), 10);
  states.variance = MomentFormat::kBf16;
  states.master = MasterWeights::kNone;
  EXPECT_DOUBLE_EQ(kept(), 4);
  states.momentum = states.variance = MomentFormat::kInt8;
  EXPECT_DOUBLE_EQ(kept(), 2 * (1 + 4.0 / 256));
  states.momentum = states.variance = MomentFormat::kFp8;
  EXPECT_DOUBLE_EQ(kept(), 2);
}

/// Adam reads a gradient, a weight and two moments, and writes all but the gradient.
TEST(OptimizerStates, AreReadAndWrittenInTheirFormats) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = config_of({.zero = 0}, OptimizerKind::kAdam);
  config.gradient_clipping = false;
  const auto bytes = [&] {
    return role_statistics(build_training(model, config).program, 0)
        .kernels.at("optimizer")
        .bytes.base();
  };
  const double elements = stage_update(model, config, 0).total();
  const double usual = bytes();
  config.optimizer_states.momentum = MomentFormat::kBf16;
  EXPECT_DOUBLE_EQ(usual - bytes(), 2 * 2 * elements);
  // No gradient is copied (2 read, 4 written) and no weight cast (4 read, 2 written); the update
  // reads a gradient of 2 bytes, not 4, and reads and writes 2 bytes of a weight, not 4.
  const double before = bytes();
  config.optimizer_states.master = MasterWeights::kNone;
  EXPECT_DOUBLE_EQ(before - bytes(), (6 + 6 + 2 + 2 * 2) * elements);
}

/// Without clipping the pass that scales, the read for the norm and the all-reduce are gone.
TEST(GradientClipping, ReadsForTheNormScalesAndWaitsForAllStages) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = config_of({.tp = 2, .pp = 2, .dp = 2, .zero = 0}, OptimizerKind::kAdam);
  const auto statistics = [&] { return role_statistics(build_training(model, config).program, 0); };
  const auto norm = [&] {
    for (const Transfer& transfer : build_training(model, config).program.transfers)
      if (transfer.purpose == "norm") return transfer;
    return Transfer{};
  };
  const ProgramStatistics clipped = statistics();
  EXPECT_EQ(norm().bytes.base(), 4);
  EXPECT_EQ(norm().participants, 2);
  EXPECT_THAT(norm().groups, ElementsAre(ElementsAre(0, 1, 4, 5), ElementsAre(2, 3, 6, 7)));
  config.parallel.zero = 1;
  EXPECT_THAT(norm().groups, ElementsAre(ElementsAre(0, 1, 4, 5, 2, 3, 6, 7)));
  config.parallel.zero = 0;
  config.gradient_clipping = false;
  EXPECT_TRUE(norm().groups.empty());
  const double elements = stage_update(model, config, 0).total();
  EXPECT_EQ(clipped.kernels.at("optimizer").bytes - statistics().kernels.at("optimizer").bytes,
            Bytes(12 * elements));
}

/// 4 bytes of each parameter go out, 34 pass through the host's memory, 2 come back.
TEST(OptimizerOffload, MovesGradientsOutWeightsBackAndStatesThroughTheHost) {
  const LlmConfig model = small_llama(4);
  TrainingConfig config = config_of({.dp = 2, .zero = 1}, OptimizerKind::kAdam);
  const double shard = stage_update(model, config, 0).total();
  const double kept = optimizer_state(model, config, 0).base();
  config.optimizer_offload.fraction = 0.75;
  EXPECT_EQ(optimizer_state(model, config, 0).base(), kept / 4);
  for (const bool overlap : {false, true}) {
    config.optimizer_offload.overlap = overlap;
    const Program program = build_training(model, config).program;
    EXPECT_THAT(verify(program), IsEmpty());
    double out = 0, through = 0, back = 0;
    for (const Transfer& transfer : program.transfers) {
      if (transfer.purpose != "host") continue;
      const double bytes = transfer.bytes.base() * (overlap ? 4 : 1);  // a layer each
      if (transfer.host->end == HostEnd::kMemory)
        through += bytes;
      else
        (transfer.host->outward ? out : back) += bytes;
    }
    EXPECT_DOUBLE_EQ(out, 4 * 0.75 * shard);
    EXPECT_DOUBLE_EQ(through, 34 * 0.75 * shard);
    EXPECT_DOUBLE_EQ(back, 2 * 0.75 * shard);
  }
}

}  // namespace
}  // namespace orrery::optimizer_test
