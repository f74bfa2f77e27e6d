// SPDX-License-Identifier: Apache-2.0
// Gated delta networks by hand: arXiv 2412.06464, and the kernels of flash-linear-attention
// (fla/ops/gated_delta_rule, fla/ops/common).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/balanced_tensors.h"
#include "tests/unit/workloads/example_models.h"
#include "tests/unit/workloads/step_kernels.h"
#include "workloads/layers/closed_forms.h"
#include "workloads/layers/layers.h"
#include "workloads/layers/rank_parameters.h"
#include "workloads/layers/recurrent/delta_net_kernels.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/steps/figures/memory.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery::delta_net_test {
namespace {

using test::kernel;

using ::testing::HasSubstr;

constexpr std::int64_t kHidden = 64, kKeyHeads = 4, kHeads = 8, kKey = 16, kValue = 32, kTaps = 4;
constexpr std::int64_t kKeys = kKeyHeads * kKey;                       // 64
constexpr std::int64_t kWide = kHeads * kKey;                          // 128
constexpr std::int64_t kValues = kHeads * kValue;                      // 256
constexpr std::int64_t kChannels = 2 * kKeys + kValues;                // 384
constexpr std::int64_t kStates = kHeads * kKey * kValue;               // 4,096
constexpr std::int64_t kProjected = kChannels + kValues + 2 * kHeads;  // 656

/// Three layers of delta networks and one of gated attention, all with experts.
LlmConfig small_delta_hybrid() {
  LlmConfig model = small_moe(4);
  model.name = "small delta hybrid";
  model.attention.output_gate = true;
  model.delta_net = {.key_heads = kKeyHeads,
                     .value_heads = kHeads,
                     .key_dim = kKey,
                     .value_dim = kValue,
                     .conv_kernel = kTaps};
  for (std::size_t i = 0; i < 3; ++i) model.layers[i].mixer = MixerKind::kDeltaNet;
  return model;
}

RankWork work_of(Phase phase, std::int64_t sequences, std::int64_t query, std::int64_t context,
                 int tp = 1) {
  RankWork work;
  work.batch.phase = phase;
  work.batch.sequences = sequences;
  work.batch.query = query;
  work.batch.context = context;
  work.split.tp = tp;
  work.split.sp = tp > 1 && phase == Phase::kTraining;
  return work;
}

StepList mixer_steps(const LlmConfig& model, const RankWork& work) {
  return attention_half_forward(model, model.layers[0], work);
}

double matrix_flops(const StepList& list) {
  double sum = 0;
  for (const Step& step : list.steps())
    if (step.kernel()) sum += step.kernel()->matrix_flops.base();
  return sum;
}

// 3 sequences of 128 tokens: 384 tokens, 6 chunks of 64. A token and head: k k^T of a chunk
// 2 x 64 x 16 = 2,048; w and u 2 x 64 x (16 + 32) = 6,144; w S and k^T v of the scan 4 x 16 x 32 =
// 2,048; outputs 2 x 16 x 32 + 2 x 64 x (16 + 32) = 7,168.
constexpr double kTokens = 384, kChunks = 6;
constexpr double kSquare = 2048, kTriangle = 6144, kScan = 2048, kOutputs = 7168;

TEST(DeltaNet, ForwardFlopsAreThoseOfProjectionsTrianglesAndStates) {
  const LlmConfig model = small_delta_hybrid();
  const double matrices = 2.0 * kHidden * (kProjected + kValues);
  const double inside = kHeads * (kSquare + kTriangle + kScan + kOutputs);
  for (const int tp : {1, 2, 4}) {
    for (const Phase phase : {Phase::kTraining, Phase::kPrefill})
      EXPECT_DOUBLE_EQ(tp * matrix_flops(mixer_steps(model, work_of(phase, 3, 128, 128, tp))),
                       kTokens * (matrices + inside));
  }
}

// w, u and states again; then, a token and head, with K, V and C for 16, 32 and 64 elements:
// values 2 C (K + V); states 6 K V; keys 6 K V + 2 C V + 6 C K; triangles 10 C K + 4 C V + 4 C C.
TEST(DeltaNet, BackwardComputesStatesAgain) {
  LlmConfig model = small_delta_hybrid();
  model.layers[0].feeds = false;
  const StepList steps =
      layer_backward(model, model.layers[0], work_of(Phase::kTraining, 3, 128, 128));
  const double k = kKey, v = kValue, c = 64;
  const double gradients = 2 * c * (k + v) + 12 * k * v + 6 * c * v + 16 * c * k + 4 * c * c;
  EXPECT_DOUBLE_EQ(matrix_flops(steps), kTokens * (2 * 2.0 * kHidden * (kProjected + kValues) +
                                                   kHeads * (kTriangle + kScan + gradients)));
}

TEST(DeltaNet, KernelsReadAndWriteEachOperandOnce) {
  const LlmConfig model = small_delta_hybrid();
  const StepList steps = mixer_steps(model, work_of(Phase::kPrefill, 3, 128, 128));
  const double gates = kTokens * kHeads * 4, squares = kTokens * kHeads * 64;
  const auto read = [&](const char* name) { return kernel(steps, name).read.base(); };
  const auto written = [&](const char* name) { return kernel(steps, name).written.base(); };
  EXPECT_EQ(read("delta convolution"), kTokens * kChannels * 2);
  EXPECT_EQ(written("delta gates"), 2 * gates);
  EXPECT_EQ(read("delta key norm"), 2 * kTokens * kKeys * 2);
  EXPECT_EQ(read("delta key products"), kTokens * kKeys * 2 + 2 * gates);
  EXPECT_EQ(written("delta key products"), squares * 4);
  EXPECT_EQ(read("delta triangle solve"), squares * 4);
  EXPECT_EQ(written("delta triangle solve"), squares * 2);
  EXPECT_EQ(read("delta chunk values"), kTokens * (kKeys + kValues) * 2 + 2 * gates + squares * 2);
  EXPECT_EQ(written("delta chunk values"), kTokens * (kWide + kValues) * 2);
  EXPECT_EQ(read("delta states"), kTokens * (kKeys + kWide + kValues) * 2 + gates);
  // States in front of each chunk in 16 bits, and the last of each sequence in fp32.
  EXPECT_EQ(written("delta states"),
            kChunks * kStates * 2 + kTokens * kValues * 2 + 3 * kStates * 4);
  EXPECT_EQ(read("delta outputs"),
            kTokens * (2 * kKeys + kValues) * 2 + gates + kChunks * kStates * 2);
  EXPECT_EQ(written("delta outputs"), kTokens * kValues * 2);
  EXPECT_EQ(read("delta gated norm"), 2 * kTokens * kValues * 2);
  // Blocks of 16: four on the diagonal, and 3 x 2 + 2 x 3 + 4 products below it.
  EXPECT_EQ(kernel(steps, "delta triangle solve").vector_flops.base(),
            kChunks * kHeads * (4 + 16) * 2 * 16 * 16 * 16);
}

TEST(DeltaNet, APieceOfAPromptReadsTheStateBeforeIt) {
  const LlmConfig model = small_delta_hybrid();
  const auto scan = [&](std::int64_t context) {
    return kernel(mixer_steps(model, work_of(Phase::kPrefill, 3, 128, context)), "delta states");
  };
  EXPECT_EQ((scan(256).read - scan(128).read).base(), 3 * kStates * 4);
  EXPECT_EQ(scan(256).written, scan(128).written);
}

TEST(DeltaNet, ADecodeReadsAndWritesItsStateWhateverTheContext) {
  const LlmConfig model = small_delta_hybrid();
  const auto step = [&](std::int64_t context) {
    return mixer_steps(model, work_of(Phase::kDecode, 7, 1, context));
  };
  const StepList steps = step(1000);
  const Kernel& update = kernel(steps, "delta state update");
  EXPECT_EQ(update.read.base(), 7 * (kStates * 4 + (kChannels + 2 * kHeads) * 2));
  EXPECT_EQ(update.written.base(), 7 * (kStates * 4 + kValues * 2));
  EXPECT_EQ(update.vector_flops.base(), 7.0 * 7 * kStates);
  EXPECT_EQ(kernel(steps, "delta convolution update").read.base(), 7 * kChannels * kTaps * 2);
  for (std::size_t i = 0; i < steps.steps().size(); ++i)
    EXPECT_EQ(*steps.steps()[i].kernel(), *step(100000).steps()[i].kernel());
}

TEST(DeltaNet, WeightsOfARankAreItsShareOfAll) {
  const LlmConfig model = small_delta_hybrid();
  // Projections; taps of each channel, A and the bias of decays by head; one norm for all heads.
  const std::int64_t split = kHidden * (kProjected + kValues) + kChannels * kTaps + 2 * kHeads;
  const RankParameters whole = layer_halves(model, model.layers[0], {}).attention;
  EXPECT_EQ(whole.split, split);
  EXPECT_EQ(whole.whole, kValue + kHidden);
  EXPECT_EQ(whole.sixteen_bit,
            2 * kHidden * kHeads + kChannels * kTaps + 2 * kHeads + kValue + kHidden);
  EXPECT_EQ(4 * layer_halves(model, model.layers[0], {.tp = 4, .sp = true}).attention.split, split);
  EXPECT_EQ(stage_parameters(model, {}, 0).total(), count_parameters(model).total);
  // Queries of attention come with as many columns of gates.
  LlmConfig plain = model;
  plain.attention.output_gate = false;
  EXPECT_EQ(count_parameters(model).total - count_parameters(plain).total,
            kHidden * model.attention.heads * model.attention.head_dim);
}

// In 16 bits: what the convolution reads, gates with the projections of steps and decays, keys of
// length 1 with fp32 lengths, what the rule reads (with sums of decays in fp32 and triangles), its
// result with fp32 deviations, that normed, and what the last product reads.
TEST(DeltaNet, KeepsWhatTheRuleReads) {
  LlmConfig model = small_delta_hybrid();
  model.layers[0].feeds = false;
  const auto kept = [&](Recompute recompute, int tp) {
    RankWork work = work_of(Phase::kTraining, 3, 128, 128, tp);
    work.passes.recompute = recompute;
    return layer_activation_bytes(model, model.layers[0], work).base();
  };
  const double columns = 2 * kHidden + kChannels + (kValues + 2 * kHeads) + 2 * kKeys +
                         (2 * kWide + kValues + kHeads + kHeads * 64) + 3 * kValues;
  const double wide = 2 * kKeyHeads + kHeads + kHeads;
  EXPECT_EQ(kept(Recompute::kNone, 1), kTokens * (2 * columns + 4 * wide));
  EXPECT_EQ(2 * kept(Recompute::kNone, 2), kTokens * (2 * columns + 4 * wide));
  EXPECT_EQ(kept(Recompute::kFull, 1), kTokens * 2 * kHidden);
}

TEST(DeltaNet, TensorsOfStepsAreMadeUsedAndFreed) {
  test::expect_balanced_tensors(
      small_delta_hybrid(), 128,
      {ParallelConfig{}, ParallelConfig{.tp = 2, .sp = true, .pp = 2, .dp = 2, .ep = 2}});
}

TEST(DeltaNet, HoldsAStateOfEverySequenceInPlaceOfACache) {
  const LlmConfig model = small_delta_hybrid();
  const auto cache = [&](std::int64_t context, int tp) {
    InferenceConfig config;
    config.phase = Phase::kDecode;
    config.micro_batch = 5;
    config.kv_length = context;
    config.parallel.tp = config.parallel.ep = tp;
    return inference_memory(model, config)[0].kv_cache.base();
  };
  // fp32 states and three inputs of each channel in three layers; one of attention with 4 KV heads
  // of 8.
  const double state = kStates * 4 + kChannels * 3 * 2, token = 2 * 4 * 8 * 2;
  EXPECT_EQ(cache(99, 1), 5 * (3 * state + 100 * token));
  EXPECT_EQ(cache(999, 1), 5 * (3 * state + 1000 * token));
  EXPECT_EQ(2 * cache(99, 2), cache(99, 1));
}

TEST(DeltaNet, ContextsDoNotMoveItsFlops) {
  LlmConfig model = small_delta_hybrid();
  model.layers.resize(1);
  EXPECT_EQ(model_flops_per_token(model, 64, true).base(),
            model_flops_per_token(model, 6400, true).base());
  LlmConfig without = model;
  without.delta_net.value_dim = without.delta_net.key_dim = 0;
  EXPECT_THROW(require_divisible(model, {.tp = 8, .sp = true}), config::KeyError);  // 4 key heads
}

TEST(DeltaNet, PlansThatAreKnownOfAttentionAloneNameIt) {
  const LlmConfig model = small_delta_hybrid();
  InferenceConfig config;
  config.parallel.cp = 2;
  try {
    require_supported(model, config);
    FAIL() << "no error";
  } catch (const config::KeyError& error) {
    EXPECT_THAT(error.what(), HasSubstr("context parallelism of gated delta networks"));
  }
}

nlohmann::json qwen3_next() {
  return {{"model_type", "qwen3_next"},
          {"hidden_size", 64},
          {"vocab_size", 1000},
          {"num_hidden_layers", 4},
          {"num_attention_heads", 8},
          {"num_key_value_heads", 2},
          {"head_dim", 16},
          {"linear_num_key_heads", 4},
          {"linear_num_value_heads", 8},
          {"linear_key_head_dim", 16},
          {"linear_value_head_dim", 16},
          {"num_experts", 8},
          {"num_experts_per_tok", 2},
          {"moe_intermediate_size", 32},
          {"shared_expert_intermediate_size", 32}};
}

std::vector<MixerKind> mixers(const LlmConfig& model) {
  std::vector<MixerKind> kinds;
  for (const LayerConfig& layer : model.layers) kinds.push_back(layer.mixer);
  return kinds;
}

TEST(QwenNext, AttendsInEveryFourthLayerOrWhereItsListSays) {
  constexpr MixerKind kDelta = MixerKind::kDeltaNet, kFull = MixerKind::kAttention;
  nlohmann::json file = qwen3_next();
  EXPECT_THAT(mixers(from_huggingface(file, "m")),
              testing::ElementsAre(kDelta, kDelta, kDelta, kFull));
  file["full_attention_interval"] = 2;
  EXPECT_THAT(mixers(from_huggingface(file, "m")),
              testing::ElementsAre(kDelta, kFull, kDelta, kFull));
  file["layer_types"] = {"full_attention", "linear_attention", "linear_attention",
                         "full_attention"};
  EXPECT_THAT(mixers(from_huggingface(file, "m")),
              testing::ElementsAre(kFull, kDelta, kDelta, kFull));
  file["layer_types"][1] = "sliding_attention";
  EXPECT_THROW(from_huggingface(file, "m"), UnsupportedModel);
}

TEST(QwenNext, RefusesStatesInAnotherFormat) {
  nlohmann::json file = qwen3_next();
  file["mamba_ssm_dtype"] = "bfloat16";
  EXPECT_THROW(from_huggingface(file, "m"), UnsupportedModel);
}

}  // namespace
}  // namespace orrery::delta_net_test
