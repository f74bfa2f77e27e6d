// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/layers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/ops/kernels.h"

namespace orrery::layers_test {
namespace {

RankWork training_work(std::int64_t sequences, std::int64_t sequence, int tp = 1, bool sp = false) {
  RankWork work;
  work.batch.sequences = sequences;
  work.batch.query = sequence;
  work.batch.context = sequence;
  work.split.tp = tp;
  work.split.sp = sp;
  return work;
}

double matrix_flops(const StepList& list) {
  double sum = 0;
  for (const Step& step : list.steps()) {
    if (step.kernel()) sum += step.kernel()->matrix_flops.base();
  }
  return sum;
}

std::size_t find(const StepList& list, const std::string& name) {
  const auto& steps = list.steps();
  const auto found = std::find_if(steps.begin(), steps.end(),
                                  [&](const Step& step) { return step.name() == name; });
  EXPECT_NE(found, steps.end()) << "no step '" << name << "'";
  return static_cast<std::size_t>(found - steps.begin());
}

bool has(const StepList& list, const std::string& name) {
  return std::any_of(list.steps().begin(), list.steps().end(),
                     [&](const Step& step) { return step.name() == name; });
}

const Kernel& kernel(const StepList& list, const std::string& name) {
  return *list.steps().at(find(list, name)).kernel();
}

double collective_bytes(const StepList& list, const std::string& name) {
  return list.steps().at(find(list, name)).collective()->bytes.base();
}

/// All steps that `step` waits for, directly or not.
std::set<std::size_t> ancestors(const StepList& list, std::size_t step) {
  std::set<std::size_t> all;
  for (const std::size_t earlier : list.steps()[step].after) {
    all.insert(earlier);
    all.merge(ancestors(list, earlier));
  }
  return all;
}

TEST(CausalPairs, AreTheUnmaskedElements) {
  EXPECT_EQ(causal_pairs(4, 4, 0), 10);  // 1 + 2 + 3 + 4
  EXPECT_EQ(causal_pairs(1, 7, 0), 7);
  EXPECT_EQ(causal_pairs(2, 5, 0), 9);   // 4 + 5
  EXPECT_EQ(causal_pairs(4, 4, 2), 7);   // 1 + 2 + 2 + 2
  EXPECT_EQ(causal_pairs(3, 9, 4), 12);  // 4 + 4 + 4
  EXPECT_EQ(causal_pairs(4, 4, 100), 10);
}

TEST(Gemm, CountsEveryOperandOnce) {
  const Kernel bf16 = gemm("g", Precision::kBf16, {.m = 2, .n = 3, .k = 4});
  EXPECT_EQ(bf16.matrix_flops.base(), 48);  // 2 * 2 * 3 * 4
  EXPECT_EQ(bf16.read.base(), 40);          // (8 + 12) elements of 2 bytes
  EXPECT_EQ(bf16.written.base(), 12);
  const Kernel fp8 = gemm("g", Precision::kFp8, {.m = 2, .n = 3, .k = 4});
  EXPECT_EQ(fp8.read.base(), 20);
  EXPECT_EQ(fp8.written.base(), 12);  // bf16 output
}

TEST(Gemm, GradientsHaveTheForwardFlops) {
  const GemmShape shape{.m = 2, .n = 3, .k = 4};
  const Kernel dgrad = data_gradient("g", Precision::kBf16, shape);
  EXPECT_EQ(dgrad.matrix_flops.base(), 48);
  EXPECT_EQ(dgrad.written.base(), 16);  // 2 x 4
  const Kernel wgrad = weight_gradient("g", Precision::kBf16, shape);
  EXPECT_EQ(wgrad.matrix_flops.base(), 48);
  EXPECT_EQ(wgrad.read.base(), 52);  // x 8, dy 6, accumulated gradient 12 elements of 2 bytes
  EXPECT_EQ(wgrad.written.base(), 24);
}

TEST(LayerForward, FlopsAreTwicePerMatrixElementAndTokenPlusAttention) {
  const LlmConfig model = small_llama(1);
  // 64 x (64 + 32 + 32) + 64 x 64 + 3 x 64 x 192 = 49152 elements.
  constexpr double kMatrices = 49152;
  for (const int tp : {1, 2, 4}) {
    const RankWork work = training_work(3, 16, tp, tp > 1);
    // 3 sequences, 8 heads, 16 * 17 / 2 pairs, 4 * 8 FLOPs a pair
    const double attention = 3.0 * 8 * 136 * 32;
    EXPECT_DOUBLE_EQ(tp * matrix_flops(layer_forward(model, model.layers[0], work)),
                     2 * kMatrices * 48 + attention);
  }
}

TEST(LayerForward, CopiesKvHeadsWhenThereAreMoreRanksThanHeads) {
  const LlmConfig model = small_llama(1);
  const RankWork work = training_work(1, 16, 8);
  const StepList list = layer_forward(model, model.layers[0], work);
  EXPECT_EQ(kernel(list, "qkv").n,
            24);  // one query head and one of each, though 4 KV heads / 8 is a half
}

TEST(LayerBackward, OfFlashAttentionTakesTwoAndAHalfForwards) {
  const LlmConfig model = small_llama(1);
  const RankWork work = training_work(3, 16);
  const double matrices = 2 * 49152.0 * 48, attention = 3.0 * 8 * 136 * 32;
  EXPECT_DOUBLE_EQ(matrix_flops(layer_backward(model, model.layers[0], work)),
                   2 * matrices + 2.5 * attention);
}

TEST(LayerBackward, RecomputesWhatIsAskedFor) {
  const LlmConfig model = small_llama(1);
  RankWork work = training_work(3, 16);
  const double forward = matrix_flops(layer_forward(model, model.layers[0], work));
  const double none = matrix_flops(layer_backward(model, model.layers[0], work));
  work.passes.recompute = Recompute::kSelective;
  const double selective = matrix_flops(layer_backward(model, model.layers[0], work));
  work.passes.recompute = Recompute::kFull;
  const double full = matrix_flops(layer_backward(model, model.layers[0], work));
  EXPECT_DOUBLE_EQ(selective - none, 3.0 * 8 * 136 * 32);
  EXPECT_DOUBLE_EQ(full - none, forward);
}

TEST(StoredAttention, ComputesTheWholeSquareAndMovesIt) {
  const LlmConfig model = megatron_gpt(1, 64, 8);
  RankWork work = training_work(2, 16);
  work.flash_attention = false;
  work.passes.dropout = true;
  const StepList forward = layer_forward(model, model.layers[0], work);
  // 12 h^2 matrix elements; the square counts 2 products of 2 b a s^2 d.
  const double matrices = 2 * 12.0 * 64 * 64 * 32, square = 4.0 * 2 * 16 * 16 * 64;
  EXPECT_DOUBLE_EQ(matrix_flops(forward), matrices + square);
  EXPECT_DOUBLE_EQ(matrix_flops(layer_backward(model, model.layers[0], work)),
                   2 * (matrices + square));
  const double elements = 2.0 * 8 * 16 * 16;
  // Megatron-LM's softmax reads up to the diagonal: 16 x 17 / 2 of 16 x 16.
  EXPECT_EQ(kernel(forward, "attention softmax").read.base(), 2.0 * 2 * 8 * 136);
  EXPECT_EQ(kernel(forward, "attention dropout").written.base(), 3 * elements);
}

TEST(SequenceParallel, SplitsNormsAndHalvesNoTraffic) {
  const LlmConfig model = small_llama(1);
  const StepList plain = layer_forward(model, model.layers[0], training_work(2, 16, 4));
  const StepList split = layer_forward(model, model.layers[0], training_work(2, 16, 4, true));
  EXPECT_EQ(kernel(plain, "attention norm").m, 32);
  EXPECT_EQ(kernel(split, "attention norm").m, 8);
  // Megatron-LM: an all-reduce becomes a reduce-scatter here and an all-gather there, of the same
  // buffer.
  const double buffer = 32.0 * 64 * 2;
  EXPECT_EQ(collective_bytes(plain, "attention output output all-reduce"), buffer);
  EXPECT_EQ(collective_bytes(split, "attention output output reduce-scatter"), buffer);
  EXPECT_EQ(collective_bytes(split, "gate-up input all-gather"), buffer);
  EXPECT_FALSE(has(split, "attention output output all-reduce"));
}

TEST(TensorParallel, GradientCollectiveRunsBesideTheWeightGradient) {
  const LlmConfig model = small_llama(1);
  for (const bool sp : {false, true}) {
    const StepList list = layer_backward(model, model.layers[0], training_work(2, 16, 4, sp));
    const std::size_t reduce =
        find(list, sp ? "gate-up dgrad reduce-scatter" : "gate-up dgrad all-reduce");
    const std::size_t wgrad = find(list, "gate-up wgrad");
    EXPECT_LT(reduce, wgrad);
    EXPECT_FALSE(ancestors(list, wgrad).contains(reduce));
    EXPECT_TRUE(ancestors(list, reduce).contains(find(list, "gate-up dgrad")));
    EXPECT_TRUE(ancestors(list, find(list, "mlp norm backward")).contains(reduce));
    if (!sp) continue;
    const std::size_t gather = find(list, "gate-up input all-gather again");
    EXPECT_TRUE(ancestors(list, wgrad).contains(gather));
    EXPECT_FALSE(ancestors(list, find(list, "gate-up dgrad")).contains(gather));
  }
}

TEST(Layer, HasFewOperators) {
  const LlmConfig model = library_model("llama_3_1_405b");
  const RankWork work = training_work(1, 8192, 8, true);
  EXPECT_LE(layer_forward(model, model.layers[0], work).steps().size(), 15u);
  EXPECT_LE(layer_backward(model, model.layers[0], work).steps().size(), 24u);
}

RankWork decode_work(std::int64_t sequences, std::int64_t context) {
  RankWork work;
  work.batch.phase = Phase::kDecode;
  work.batch.sequences = sequences;
  work.batch.query = 1;
  work.batch.context = context;
  return work;
}

TEST(LatentAttention, DecodeReadsTheSharedLatentOnceForAllHeads) {
  const LlmConfig model = library_model("deepseek_v3");
  const StepList list = layer_forward(model, model.layers[0], decode_work(4, 1000));
  const Kernel& core = kernel(list, "attention");
  // 128 heads, scores over 512 + 64 columns, values over 512.
  EXPECT_DOUBLE_EQ(core.matrix_flops.base(), 2.0 * 4 * 128 * 1000 * (576 + 512));
  // The cache of 576 bf16 elements a token, and the queries.
  EXPECT_DOUBLE_EQ(core.read.base(), 2.0 * 4 * 1000 * 576 + 2.0 * 4 * 128 * 576);
  EXPECT_DOUBLE_EQ(kernel(list, "query absorb").matrix_flops.base(), 2.0 * 4 * 128 * 128 * 512);
  EXPECT_DOUBLE_EQ(kernel(list, "value up").matrix_flops.base(), 2.0 * 4 * 128 * 128 * 512);
}

TEST(LatentAttention, PrefillExpandsKeysOf192AndValuesOf128) {
  const LlmConfig model = library_model("deepseek_v3");
  RankWork work = training_work(1, 256);
  work.batch.phase = Phase::kPrefill;
  const StepList list = layer_forward(model, model.layers[0], work);
  EXPECT_DOUBLE_EQ(kernel(list, "attention").matrix_flops.base(),
                   2.0 * 128 * (256.0 * 257 / 2) * (192 + 128));
  EXPECT_EQ(kernel(list, "latent down").n, 1536 + 512 + 64);
  EXPECT_EQ(kernel(list, "key-value up").n, 128 * (128 + 128));
}

TEST(Decode, ReadsTheWindowOfTheCacheInItsPrecision) {
  const LlmConfig model = small_llama(1);
  RankWork work = decode_work(2, 100);
  work.formats.kv_precision = Precision::kFp8;
  const auto cache = [&](const LayerConfig& layer) {
    // Queries 2 x 8 x 8 and the new token's keys and values 2 x 2 x 4 x 8, bf16, are fresh.
    return kernel(layer_forward(model, layer, work), "attention").read.base() - 256 - 256;
  };
  EXPECT_EQ(cache({}), 2.0 * 99 * 2 * 4 * 8);
  EXPECT_EQ(cache({.window = 10}), 2.0 * 9 * 2 * 4 * 8);
}

TEST(Experts, ActiveSlotsFollowIndependentUniformRouting) {
  MoeConfig moe;
  moe.experts = 4;
  moe.experts_per_token = 1;
  EXPECT_DOUBLE_EQ(expected_active_slots(moe, 1, 1), 1);
  // Two tokens pick one of 4 each: 4 * (1 - (3/4)^2) = 1.75 different ones.
  EXPECT_DOUBLE_EQ(expected_active_slots(moe, 1, 2), 1.75);
  EXPECT_DOUBLE_EQ(expected_active_slots(moe, 2, 1), 0.875);  // the same two tokens, half the slots
  EXPECT_NEAR(expected_active_slots(moe, 1, 1000), 4, 1e-9);
}

TEST(Experts, LeftOverSlotsHoldCopies) {
  MoeConfig moe;
  moe.experts = 256;
  moe.experts_per_token = 8;
  EXPECT_EQ(expert_slots(moe, 256), 1);
  EXPECT_EQ(expert_slots(moe, 320), 1);  // 64 copies
  EXPECT_EQ(expert_slots(moe, 72), 4);   // 288 slots, 32 copies as in DeepSeek-V3's deployment
}

TEST(Experts, EveryTokenGoesToItsExpertsAndComesBack) {
  const LlmConfig model = small_moe(1);
  RankWork work = training_work(2, 16, 4, true);
  work.split.ep = 8;
  const StepList list = layer_forward(model, model.layers[0], work);
  // 32 tokens over 4 ranks, 2 experts each, 64 bf16 elements.
  EXPECT_EQ(collective_bytes(list, "dispatch"), 8.0 * 2 * 64 * 2);
  EXPECT_EQ(collective_bytes(list, "combine"), 8.0 * 2 * 64 * 2);
  EXPECT_DOUBLE_EQ(kernel(list, "expert up").matrix_flops.base(), 2.0 * 16 * 64 * 64);
  EXPECT_DOUBLE_EQ(kernel(list, "expert down").matrix_flops.base(), 2.0 * 16 * 64 * 32);
  EXPECT_DOUBLE_EQ(kernel(list, "shared expert up").matrix_flops.base(), 2.0 * 8 * 64 * 64);
  // The shared expert runs beside the dispatch.
  EXPECT_FALSE(ancestors(list, find(list, "shared expert down")).contains(find(list, "dispatch")));
  EXPECT_TRUE(
      ancestors(list, find(list, "combine add")).contains(find(list, "shared expert down")));
}

/// 8 tokens of a rank, 2 copies each, 64 elements of 2 bytes; 8 experts of 32 columns.
RankWork split_experts(int ep, int etp) {
  RankWork work = training_work(1, 8);
  work.split.ep = ep;
  work.split.etp = etp;
  return work;
}

TEST(SplitExperts, RowsThatArrivedAreGatheredAndResultsReducedBeforeTheyGoBack) {
  const LlmConfig model = small_moe(1);
  const StepList list = layer_forward(model, model.layers[0], split_experts(2, 2));
  EXPECT_EQ(collective_bytes(list, "dispatch"), 16.0 * 64 * 2);
  // Two ranks share each expert: 2 x 16 rows.
  EXPECT_EQ(collective_bytes(list, "dispatch all-gather"), 32.0 * 64 * 2);
  EXPECT_EQ(collective_bytes(list, "combine reduce-scatter"), 32.0 * 64 * 2);
  EXPECT_EQ(collective_bytes(list, "combine"), 16.0 * 64 * 2);
  EXPECT_TRUE(ancestors(list, find(list, "expert up")).contains(find(list, "dispatch all-gather")));
  EXPECT_TRUE(
      ancestors(list, find(list, "combine")).contains(find(list, "combine reduce-scatter")));
  // Twice the rows, half the columns: 32 x 64 x (2 x 16) and 32 x 16 x 64.
  EXPECT_EQ(kernel(list, "expert up").matrix_flops.base(), 2.0 * 32 * 64 * 32);
  EXPECT_EQ(kernel(list, "expert down").matrix_flops.base(), 2.0 * 32 * 16 * 64);
  EXPECT_EQ(kernel(list, "expert up").n, 32);
  EXPECT_DOUBLE_EQ(matrix_flops(list),
                   matrix_flops(layer_forward(model, model.layers[0], split_experts(4, 1))));
}

TEST(SplitExperts, WithoutExpertParallelismTokensAreGatheredOnceAndReducedAfterTheirCopies) {
  const LlmConfig model = small_moe(1);
  const StepList list = layer_forward(model, model.layers[0], split_experts(1, 2));
  EXPECT_FALSE(has(list, "dispatch"));
  EXPECT_EQ(collective_bytes(list, "expert tokens all-gather"), 16.0 * 64 * 2);
  EXPECT_EQ(collective_bytes(list, "combine add reduce-scatter"), 16.0 * 64 * 2);
  EXPECT_EQ(kernel(list, "expert up").matrix_flops.base(), 2.0 * 32 * 64 * 32);
  EXPECT_TRUE(ancestors(list, find(list, "shared expert add"))
                  .contains(find(list, "combine add reduce-scatter")));
}

TEST(SplitExperts, GoBackwardsAsTheyCame) {
  const LlmConfig model = small_moe(1);
  const StepList rows = layer_backward(model, model.layers[0], split_experts(2, 2));
  EXPECT_EQ(collective_bytes(rows, "combine backward all-gather"), 32.0 * 64 * 2);
  EXPECT_EQ(collective_bytes(rows, "dispatch backward reduce-scatter"), 32.0 * 64 * 2);
  const StepList tokens = layer_backward(model, model.layers[0], split_experts(1, 2));
  EXPECT_EQ(collective_bytes(tokens, "combine add backward all-gather"), 16.0 * 64 * 2);
  EXPECT_EQ(collective_bytes(tokens, "permute backward reduce-scatter"), 16.0 * 64 * 2);
  EXPECT_DOUBLE_EQ(matrix_flops(rows), matrix_flops(tokens));
}

TEST(Experts, BackwardHasTwiceTheForwardFlops) {
  const LlmConfig model = small_moe(1);
  const RankWork work = training_work(2, 16);
  const double attention = 2.0 * 8 * 136 * 32;
  const double forward = matrix_flops(layer_forward(model, model.layers[0], work));
  EXPECT_NEAR(matrix_flops(layer_backward(model, model.layers[0], work)),
              2 * (forward - attention) + 2.5 * attention, 1e-6 * forward);
}

TEST(Experts, QuantisedDispatchSendsOneByteAndCombineTwo) {
  const LlmConfig model = small_moe(1);
  RankWork work = decode_work(16, 10);
  work.split.tp = 2;
  work.split.ep = 4;
  work.formats.precision = Precision::kInt8;
  const StepList list = layer_forward(model, model.layers[0], work);
  EXPECT_EQ(collective_bytes(list, "dispatch"), 8.0 * 2 * 68);  // a scale of 4 bytes a token
  EXPECT_EQ(collective_bytes(list, "combine"), 8.0 * 2 * 64 * 2);
  EXPECT_EQ(collective_bytes(list, "expert output all-gather"), 16.0 * 64 * 2);
  EXPECT_EQ(kernel(list, "router").precision, Precision::kBf16);
  EXPECT_EQ(kernel(list, "attention").precision, Precision::kBf16);
}

TEST(Head, PrefillProjectsOnlyTheLastToken) {
  const LlmConfig model = small_llama(1);
  RankWork work = training_work(3, 16, 2);
  work.batch.phase = Phase::kPrefill;
  EXPECT_DOUBLE_EQ(matrix_flops(head_forward(model, work)), 2.0 * 3 * 64 * 48);
  work.batch.phase = Phase::kTraining;
  EXPECT_DOUBLE_EQ(matrix_flops(head_forward(model, work)), 2.0 * 48 * 64 * 48);
  EXPECT_DOUBLE_EQ(matrix_flops(head_backward(model, work)), 4.0 * 48 * 64 * 48);
}

TEST(RequireDivisible, NamesWhatDoesNotDivide) {
  const LlmConfig model = small_llama(1);
  EXPECT_NO_THROW(require_divisible(model, {.tp = 8}));
  try {
    require_divisible(model, {.tp = 3});
    FAIL();
  } catch (const config::KeyError& error) {
    EXPECT_EQ(error.paths(), std::vector<std::string>{"parallel.tp"});
    EXPECT_EQ(error.message(), "8 attention heads do not divide by tp = 3");
    EXPECT_EQ(error.advice().suggestion, "4");  // as near as 2, and larger
    EXPECT_EQ(error.advice().notes, std::vector<std::string>{"divisors of 8: 1, 2, 4, 8"});
  }
  EXPECT_THROW(require_divisible(model, {.ep = 2}), config::KeyError);
  EXPECT_THROW(require_divisible(small_moe(1), {.etp = 5}), config::KeyError);  // of 32 columns
}

}  // namespace
}  // namespace orrery::layers_test
