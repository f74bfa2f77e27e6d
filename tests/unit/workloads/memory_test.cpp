// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/figures/memory.h"

#include <gtest/gtest.h>

#include "tests/unit/workloads/example_models.h"

namespace orrery::memory_test {
namespace {

using namespace literals;

TrainingConfig selene(int pp, int vpp, std::int64_t global_batch, std::int64_t micro_batch) {
  TrainingConfig config;
  config.parallel = {.tp = 8, .pp = pp, .vpp = vpp};
  config.global_batch = global_batch;
  config.micro_batch = micro_batch;
  config.sequence = 2048;
  config.precision = Precision::kFp16;
  config.schedule = vpp > 1 ? "interleaved" : "1f1b";
  config.flash_attention = false;
  config.dropout = true;
  return config;
}

double in_gib(Bytes bytes) { return bytes / 1_GiB; }

/// s b h (10 + 24 / t + 5 a s / (h t)): Korthikanti et al. 2022, equation 2; 34 / t with sequence
/// parallelism (equation 4); without the last term under selective recomputation (equation 6).
TEST(LayerActivations, FollowTheFormulasOfKorthikanti) {
  const double s = 2048, b = 4, h = 6144, a = 64, t = 8;
  const LlmConfig model = megatron_gpt(48, 6144, 64);
  TrainingConfig config = selene(1, 1, 4, 4);
  const auto bytes = [&](bool sp, Recompute recompute) {
    config.parallel.sp = sp;
    config.recompute = recompute;
    return layer_activation_bytes(model, model.layers[0], rank_work(config)).base();
  };
  EXPECT_DOUBLE_EQ(bytes(false, Recompute::kNone), s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
  EXPECT_DOUBLE_EQ(bytes(true, Recompute::kNone), s * b * h / t * (34 + 5 * a * s / h));
  EXPECT_DOUBLE_EQ(bytes(false, Recompute::kSelective), s * b * h * (10 + 24 / t));
  EXPECT_DOUBLE_EQ(bytes(true, Recompute::kSelective), s * b * h / t * 34);
  EXPECT_DOUBLE_EQ(bytes(false, Recompute::kFull), 2 * s * b * h);
  config.parallel.tp = 1;
  EXPECT_DOUBLE_EQ(bytes(false, Recompute::kNone), s * b * h * (34 + 5 * a * s / h));
}

/// The most activations that the first stage keeps at a time.
double kept_gib(const LlmConfig& model, const TrainingConfig& config) {
  const Program program = build_training(model, config, true).program;
  return in_gib(memory_profile(program, program.roles[0]).peak(TensorRole::kActivation));
}

TEST(TrainingMemory, OfTheFirstStageIsThePapersFigure) {
  // Korthikanti et al. 2022, figure 1, by its formulas: 22B 59.25 GiB; selective with sequence
  // parallelism 9.5625 GiB.
  const LlmConfig small = megatron_gpt(48, 6144, 64);
  TrainingConfig config = selene(1, 1, 4, 4);
  EXPECT_NEAR(kept_gib(small, config), 59.25, 1e-6);
  EXPECT_NEAR(in_gib(training_memory(small, config)[0].activations), 59.25, 1e-6);
  config.parallel.sp = true;
  config.recompute = Recompute::kSelective;
  EXPECT_NEAR(kept_gib(small, config), 9.5625, 1e-6);
  // 175B, 8 stages of 3 chunks: 96 layers (1 + 7 / 24) x 34 s b h / 8 = 12.3516 GiB.
  const LlmConfig large = megatron_gpt(96, 12288, 96);
  config = selene(8, 3, 64, 1);
  EXPECT_NEAR(kept_gib(large, config), 66.84375, 1e-6);
  config.parallel.sp = true;
  config.recompute = Recompute::kSelective;
  EXPECT_NEAR(kept_gib(large, config), 12.3515625, 1e-6);
  // Where memory is fullest scores are there again, and an MLP's tensors have gone.
  EXPECT_LT(in_gib(training_memory(large, config)[0].activations), 12.3515625);
}

TEST(TrainingMemory, StatesOfAllRanksAreSixteenBytesAParameter) {
  const LlmConfig model = library_model("llama_3_1_405b");
  TrainingConfig config;
  config.sequence = 8192;
  config.global_batch = 64;
  const double parameters = static_cast<double>(count_parameters(model).total);
  EXPECT_NEAR(16 * parameters, 6.49e12, 0.01e12);  // 405.85 B x 16 B
  for (const int dp : {1, 4}) {
    for (const int zero : {0, 1}) {
      config.parallel = {.tp = 8, .sp = true, .pp = 12, .dp = dp, .zero = zero};
      double sum = 0, copies = 0;
      for (const MemoryUse& use : training_memory(model, config)) {
        sum += 8 * dp * (use.weights + use.gradients + use.optimizer).base();
      }
      // 8 tensor ranks hold norms (2 x 126 + 1 of 16384) whole; replicas weights and gradients, and
      // without the distributed optimizer its state.
      const double norms = 253.0 * 16384;
      copies = (zero == 1 ? 4.0 * dp + 12 : 16.0 * dp) * (parameters + 7 * norms);
      EXPECT_NEAR(sum / copies, 1, 1e-12) << "dp " << dp << " zero " << zero;
    }
  }
}

TEST(TrainingMemory, OfAStageOfElevenLayersOf405B) {
  const LlmConfig model = library_model("llama_3_1_405b");
  TrainingConfig config;
  config.parallel = {.tp = 8, .sp = true, .pp = 12};
  config.sequence = 8192;
  config.global_batch = 64;
  const MemoryUse stage = training_memory(model, config)[5];
  // 11 layers of 3.188 B parameters over 8 ranks, 16 B each.
  EXPECT_NEAR((stage.weights + stage.gradients + stage.optimizer) / 1_GB, 70.1, 0.05);
}

TEST(TrainingMemory, ExpertStatesShardOverTheirReplicas) {
  const LlmConfig model = small_moe(2);
  TrainingConfig config;
  config.sequence = 16;
  config.parallel = {.dp = 8, .ep = 4};
  config.global_batch = 8;
  const MemoryUse use = training_memory(model, config)[0];
  const double experts = 2.0 * 2 * 3 * 64 * 32;  // 2 layers, 2 of 8 experts
  const double dense = static_cast<double>(count_parameters(model).total) - 4 * experts;
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * (dense + experts));
  EXPECT_DOUBLE_EQ(use.optimizer.base(), 12 * (dense / 8 + experts / 2));
}

TEST(TrainingMemory, ExpertsAreSplitOverTheRanksThatShareThem) {
  const LlmConfig model = small_moe(2);
  TrainingConfig config;
  config.sequence = 16;
  config.parallel = {.dp = 8, .ep = 2, .etp = 4};
  config.global_batch = 8;
  const MemoryUse use = training_memory(model, config)[0];
  const double experts = 2.0 * 4 * 3 * 64 * 8;  // 2 layers, 4 of 8 experts, 8 of 32 columns
  const double dense = static_cast<double>(count_parameters(model).total) - 8 * experts;
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * (dense + experts));
  EXPECT_DOUBLE_EQ(use.optimizer.base(), 12 * (dense / 8 + experts));  // one rank has each part
}

TEST(LayerActivations, OfSplitExpertsHaveTheRowsOfAllThatShareThem) {
  const LlmConfig model = small_moe(1);
  TrainingConfig config;
  config.sequence = 16;
  config.parallel = {.dp = 8, .ep = 2, .etp = 1};
  const auto bytes = [&](int ep, int etp) {
    config.parallel.ep = ep;
    config.parallel.etp = etp;
    return layer_activation_bytes(model, model.layers[0], rank_work(config)).base();
  };
  // 16 tokens of 2 copies: 3 more ranks' rows of 64 elements; without exchange their outputs, too.
  EXPECT_DOUBLE_EQ(bytes(2, 4) - bytes(2, 1), 16.0 * 2 * 3 * 64 * 2);
  EXPECT_DOUBLE_EQ(bytes(1, 4) - bytes(2, 1), 16.0 * 2 * 3 * 64 * 2 * 2);
}

/// Transformer Engine keeps the inputs of fp8 products in fp8; norms, the core of attention and the
/// function of the MLP keep theirs in 16 bits.
TEST(LayerActivations, InputsOfProductsMayBeKeptInFp8) {
  TrainingConfig config;
  config.sequence = 1024;
  config.precision = Precision::kFp8;
  const auto bytes = [&](const LlmConfig& model, bool narrow) {
    config.narrow_inputs = narrow;
    return layer_activation_bytes(model, model.layers[0], rank_work(config)).base();
  };
  // Llama 8B, a token: inputs of two norms 2 x 2 x 4096; of qkv and of the output projection 4096
  // and a second copy of 4096; queries, keys, values, outputs 2 x (4096 + 1024 + 1024 + 4096);
  // log-sum-exp 4 x 32; input of the MLP 4096, gate and up 2 x 2 x 14336, input of down 14336.
  const LlmConfig dense = library_model("llama_3_1_8b");
  EXPECT_DOUBLE_EQ(bytes(dense, true),
                   1024.0 * (16384 + 4096 + 4096 + 20480 + 128 + 4096 + 57344 + 14336));
  // In 16 bits: the three inputs and that of down twice, no second copy of the core's output.
  EXPECT_DOUBLE_EQ(bytes(dense, false), 1024.0 * (16384 + 8192 + 20480 + 128 + 8192 + 86016));
  config.flash_attention = false;  // the core does not need its output
  EXPECT_DOUBLE_EQ(bytes(dense, false) - bytes(dense, true), 1024.0 * (4096 + 4096 + 4096 + 14336));
}

TEST(TrainingMemory, FallsWithRecomputationAndLaterStages) {
  const LlmConfig model = library_model("llama_3_1_8b");
  TrainingConfig config;
  config.parallel = {.tp = 2, .sp = true, .pp = 4};
  config.sequence = 4096;
  config.global_batch = 16;
  config.flash_attention = false;
  const auto activations = [&](Recompute recompute) {
    config.recompute = recompute;
    return training_memory(model, config)[0].activations;
  };
  EXPECT_GT(activations(Recompute::kNone), activations(Recompute::kSelective));
  EXPECT_GT(activations(Recompute::kSelective), activations(Recompute::kFull));
  const std::vector<MemoryUse> stages = training_memory(model, config);
  for (std::size_t i = 1; i < stages.size(); ++i) {
    EXPECT_LT(stages[i].activations, stages[i - 1].activations);
  }
  // One layer comes back to life under full recomputation, but for its input, which is there.
  config.recompute = Recompute::kNone;
  config.parallel = {.pp = 2};
  config.global_batch = 1;
  const Bytes layer = training_memory(model, config)[0].activations / 16;
  config.recompute = Recompute::kFull;
  // Gradients beside it: two columns and one of the MLP, and the residual's.
  const double tokens = 4096, flow = tokens * 2 * (3 * 14336 + 4096);
  const double input = tokens * 2 * 4096;
  EXPECT_DOUBLE_EQ(training_memory(model, config)[0].working.base(), layer.base() - input + flow);
}

/// Nodes of 8 that a step of 405B fits on, one stage of tensor parallel 8 per node.
int fewest_nodes(Bytes capacity) {
  const LlmConfig model = library_model("llama_3_1_405b");
  TrainingConfig config;
  config.sequence = 8192;
  config.global_batch = 64;
  config.recompute = Recompute::kFull;
  for (int nodes = 1; nodes <= 126; ++nodes) {
    config.parallel = {.tp = 8, .sp = true, .pp = nodes};
    if (worst_stage(training_memory(model, config)).total() <= capacity) return nodes;
  }
  return 0;
}

TEST(TrainingMemory, FewestNodesFor405BHoldItsStatesAndAMicroBatch) {
  // States alone: 6.49 TB / (8 x 80 GB) = 10.1, so at least 11 nodes. With 11 nodes stages 5 to 9
  // have 12 layers: 12 x 3.1877 B / 8 x 16 B = 76.51 GB. Stage 5 keeps the inputs of 12 layers for
  // 11 - 5 micro-batches, 72 x 2 x 8192 x 16384 / 8 B = 2.42 GB. The layer that is recomputed: 1024
  // x 16384 x 6 B (norms, inputs) + 8192 x (4352 + 3 x 6656) x 2 B + 8192 x 16 x 4 B = 0.50 GB.
  // Gradients beside it: 8192 x 3 x 6656 x 2 B of the MLP, 9216 x 16384 x 2 B of what is gathered
  // and of the residual: 0.63 GB. Together 80.06 GB.
  EXPECT_EQ(fewest_nodes(80.1_GB), 11);
  EXPECT_EQ(fewest_nodes(80.0_GB), 12);
  EXPECT_LE(fewest_nodes(192_GB), 6);
  EXPECT_GE(fewest_nodes(192_GB), 5);  // 6.49 TB / (8 x 192 GB) = 4.2
  EXPECT_EQ(fewest_nodes(1_GB), 0);
}

TEST(InferenceMemory, HoldsWeightsOnceAndTheCacheOfItsSequences) {
  const LlmConfig model = library_model("llama_3_1_8b");
  InferenceConfig config;
  config.micro_batch = 4;
  config.kv_length = 8191;
  const MemoryUse use = inference_memory(model, config)[0];
  EXPECT_DOUBLE_EQ(use.weights.base(), 2 * static_cast<double>(count_parameters(model).total));
  // 2 x 8 KV heads x 128 x 2 B x 32 layers = 128 KiB a token; 4 x 8192 tokens.
  EXPECT_DOUBLE_EQ(use.kv_cache.base(), 4.0 * (1 << 30));
  config.parallel.tp = 2;
  EXPECT_DOUBLE_EQ(inference_memory(model, config)[0].kv_cache.base(), 2.0 * (1 << 30));
  config.kv_precision = Precision::kFp8;
  EXPECT_DOUBLE_EQ(inference_memory(model, config)[0].kv_cache.base(), 1.0 * (1 << 30));
}

TEST(InferenceMemory, LatentCacheIsWholeOnEveryTensorRank) {
  const LlmConfig model = library_model("deepseek_r1");
  InferenceConfig config;
  config.kv_length = 999;
  const auto cache = [&](int tp) {
    config.parallel = {.tp = tp, .dp = 1};
    return inference_memory(model, config)[0].kv_cache.base();
  };
  EXPECT_DOUBLE_EQ(cache(1), 61.0 * 1000 * 576 * 2);
  EXPECT_DOUBLE_EQ(cache(8), cache(1));
}

TEST(InferenceMemory, QuantisedExpertsTakeOneByte) {
  const LlmConfig model = library_model("deepseek_r1");
  InferenceConfig config;
  config.parallel = {.dp = 320, .ep = 320};
  config.precision = Precision::kInt8;
  // One expert a layer, 58 layers of 3 x 7168 x 2048 bytes = 2.55 GB; the rest (17.0 B, 1.85 B of
  // it embedding and head in 2 bytes) is on every rank.
  const Bytes weights = inference_memory(model, config)[0].weights;
  EXPECT_NEAR(weights / 1_GB, 2.55 + 17.0 + 1.85 + 0.1, 0.3);
}

}  // namespace
}  // namespace orrery::memory_test
