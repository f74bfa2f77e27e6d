// SPDX-License-Identifier: Apache-2.0
#include "workloads/steps/inference/inference.h"
#include "workloads/software/engine_switches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/diagnostics.h"
#include "sim/graph/verify.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/steps/figures/statistics.h"

namespace orrery::inference_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

InferenceConfig prefill(std::int64_t sequences, std::int64_t sequence,
                        ParallelConfig parallel = {}) {
  InferenceConfig config;
  config.parallel = parallel;
  config.phase = Phase::kPrefill;
  config.micro_batch = sequences;
  config.sequence = sequence;
  return config;
}

InferenceConfig decode(std::int64_t sequences, std::int64_t kv_length,
                       ParallelConfig parallel = {}) {
  InferenceConfig config;
  config.parallel = parallel;
  config.micro_batch = sequences;
  config.kv_length = kv_length;
  return config;
}

TEST(BuildInference, IsSoundUnderEveryParallelism) {
  for (const ParallelConfig& plan :
       {ParallelConfig{}, ParallelConfig{.tp = 4}, ParallelConfig{.tp = 2, .pp = 2, .dp = 2},
        ParallelConfig{.tp = 4, .dp = 2, .ep = 8}, ParallelConfig{.tp = 2, .sp = true, .pp = 2},
        ParallelConfig{.dp = 16, .ep = 16}}) {
    for (const LlmConfig& model : {small_llama(4), small_moe(4)}) {
      if (!model.has_moe() && plan.ep > 1) continue;
      for (const InferenceConfig& config : {prefill(4, 16, plan), decode(4, 16, plan)}) {
        const Program program = build_inference(model, config);
        EXPECT_THAT(verify(program), IsEmpty());
        EXPECT_EQ(program.ranks, plan.ranks());
      }
    }
  }
}

// Ranks that share each expert's matrices compute a token once, each its part: with sequence
// parallelism they share tokens out, and gather those of all ranks, a whole one of each.
TEST(BuildInference, ATokenOfTensorParallelRanksIsComputedOnce) {
  const auto expert_flops = [](const ParallelConfig& plan) {
    double flops = 0;
    for (const Kernel& kernel : build_inference(small_moe(2), decode(1, 64, plan)).kernels)
      if (kernel.name == "expert up" || kernel.name == "expert down")
        flops += kernel.matrix_flops.base();
    return flops;
  };
  const double alone = expert_flops({});
  EXPECT_DOUBLE_EQ(expert_flops({.tp = 2, .etp = 2}), alone / 2);
  EXPECT_DOUBLE_EQ(expert_flops({.tp = 2, .sp = true, .etp = 2}), alone);
}

TEST(BuildInference, InputsOfProductsAreQuantisedApartWhereNothingIsFused) {
  const auto quantised = [](Precision precision, bool apart) {
    InferenceConfig config = decode(8, 64);
    config.precision = precision;
    config.kernels.set(kQuantFusion, !apart);
    const Program program = build_inference(small_llama(4), config);
    return std::count_if(program.kernels.begin(), program.kernels.end(), [](const Kernel& k) {
      return k.name.find("input quantisation") != std::string::npos;
    });
  };
  // Of queries, keys and values together, of the attention's output, and of both halves of the MLP.
  EXPECT_EQ(quantised(Precision::kFp8, true), 4);
  EXPECT_EQ(quantised(Precision::kFp8, false), 0);
  EXPECT_EQ(quantised(Precision::kBf16, true), 0);
  // The search for a scale is part of kernels of that kind; scales that are known need none.
  InferenceConfig config = decode(8, 64);
  config.kernels.set(kQuantFusion, false);
  for (const Precision precision : {Precision::kFp8, Precision::kFp8Block}) {
    config.precision = precision;
    const Program program = build_inference(small_llama(4), config);
    EXPECT_EQ(std::any_of(program.kernels.begin(), program.kernels.end(),
                          [](const Kernel& k) { return k.kind == KernelClass::kQuantize; }),
              precision != Precision::kFp8);
  }
}

// Norms and functions then write 16 bits. Shared experts have kernels of their own for it where
// tokens are sent to experts, and none where every rank has a part of all.
TEST(BuildInference, WhatIsQuantisedApartIsWrittenWide) {
  const auto kernels = [](bool apart, bool spread) {
    InferenceConfig config = prefill(
        1, 64, spread ? ParallelConfig{.dp = 2, .ep = 2} : ParallelConfig{.tp = 2, .etp = 2});
    config.precision = Precision::kFp8Block;
    config.kernels.set(kQuantFusion, !apart);
    return build_inference(small_moe(2), config).kernels;
  };
  const auto count = [](const std::vector<Kernel>& all, const std::string& name) {
    return std::count_if(all.begin(), all.end(), [&](const Kernel& k) { return k.name == name; });
  };
  for (const bool spread : {false, true}) {
    const std::vector<Kernel> fused = kernels(false, spread), apart = kernels(true, spread);
    for (const std::string name : {"attention norm", "shared expert activation"}) {
      const auto of = [&](const std::vector<Kernel>& all) {
        return *std::find_if(all.begin(), all.end(),
                             [&](const Kernel& k) { return k.name == name; });
      };
      const bool wide = spread || name == "attention norm";
      const Kernel narrow = of(fused);
      EXPECT_DOUBLE_EQ((of(apart).written - narrow.written).base(),
                       wide ? static_cast<double>(narrow.m * narrow.n) : 0.0);
    }
    EXPECT_EQ(count(apart, "qkv input quantisation"), 1);
    for (const std::string name : {"shared expert up", "shared expert down"})
      EXPECT_EQ(count(apart, name + " input quantisation"), spread ? 1 : 0) << name;
  }
}

// DeepGEMM runs experts as one dense product of blocks; rows of prompts that came token by token
// are quantised in front of the second one, those of decodes by the function between.
TEST(BuildInference, DeepGemmsExpertsAreDenseProducts) {
  const auto kernels = [](InferenceConfig config, bool deep_gemm) {
    config.precision = Precision::kFp8Block;
    if (deep_gemm) config.kernels.experts = ExpertKernels::kDeepGemm;
    config.kernels.set(kQuantFusion, false);
    return build_inference(small_moe(2), config).kernels;
  };
  const auto count = [](const std::vector<Kernel>& all, const std::string& name) {
    return std::count_if(all.begin(), all.end(), [&](const Kernel& k) { return k.name == name; });
  };
  const ParallelConfig spread{.dp = 2, .ep = 2};
  for (const bool decodes : {false, true}) {
    const InferenceConfig config = decodes ? decode(8, 64, spread) : prefill(2, 64, spread);
    const std::vector<Kernel> deep = kernels(config, true), measured = kernels(config, false);
    EXPECT_EQ(count(deep, "expert down input quantisation"), decodes ? 0 : 1);
    EXPECT_EQ(count(measured, "expert down input quantisation"), 0);
    for (const char* name : {"expert up", "expert down"}) {
      const auto of = [&](const std::vector<Kernel>& all) {
        return *std::find_if(all.begin(), all.end(),
                             [&](const Kernel& k) { return k.name == name; });
      };
      const Kernel a = of(deep), b = of(measured);
      EXPECT_EQ(a.kind, KernelClass::kGemm);
      EXPECT_EQ(b.kind, KernelClass::kGroupedGemm);
      EXPECT_EQ(a.precision, Precision::kFp8Block);
      EXPECT_DOUBLE_EQ(a.matrix_flops.base(), b.matrix_flops.base());
      EXPECT_DOUBLE_EQ(a.read.base(), b.read.base());
    }
  }
}

// SGLang's shared expert of DeepSeek-V3: the same products by the kernels of the routed ones.
TEST(BuildInference, ASharedExpertThatIsRoutedIsOneMoreOfThem) {
  LlmConfig model = small_moe(2);
  model.moe.experts = 256;
  const auto kernels = [&](bool routed, const ParallelConfig& plan) {
    InferenceConfig config = decode(8, 64, plan);
    if (routed) config.kernels.set(kSharesAsRouted, true);
    return build_inference(model, config).kernels;
  };
  const auto named = [](const std::vector<Kernel>& all, const std::string& name) {
    return std::find_if(all.begin(), all.end(), [&](const Kernel& k) { return k.name == name; });
  };
  const ParallelConfig split{.tp = 2, .ep = 1, .etp = 2};
  const std::vector<Kernel> apart = kernels(false, split), routed = kernels(true, split);
  EXPECT_EQ(named(routed, "shared expert up"), routed.end());
  for (const std::string part : {" up", " down"}) {
    const Kernel shared = *named(apart, "shared expert" + part);
    const Kernel before = *named(apart, "expert" + part), now = *named(routed, "expert" + part);
    EXPECT_DOUBLE_EQ(now.matrix_flops.base(), (before.matrix_flops + shared.matrix_flops).base());
    EXPECT_NEAR(now.read.base(), (before.read + shared.read).base(), 1);
    EXPECT_DOUBLE_EQ(now.load.active, before.load.active + 1);
    EXPECT_DOUBLE_EQ(now.load.rows, before.load.rows + 8);
    EXPECT_DOUBLE_EQ(now.load.experts, 257);
  }
  // Not where ranks share the experts out.
  const std::vector<Kernel> spread = kernels(true, {.tp = 2, .ep = 2});
  EXPECT_NE(named(spread, "shared expert up"), spread.end());
}

TEST(BuildInference, TritonsExpertsScaleTheirSums) {
  const auto precision = [](bool triton, const char* part) {
    InferenceConfig config = decode(8, 64);
    config.precision = Precision::kFp8Block;
    if (triton) config.kernels.experts = ExpertKernels::kTriton;
    const Program program = build_inference(small_moe(2), config);
    return std::find_if(program.kernels.begin(), program.kernels.end(),
                        [&](const Kernel& k) { return k.name == part; })
        ->precision;
  };
  EXPECT_EQ(precision(false, "expert up"), Precision::kFp8Block);
  EXPECT_EQ(precision(true, "expert up"), Precision::kFp8);
  EXPECT_EQ(precision(true, "qkv"), Precision::kFp8Block);
}

TEST(BuildInference, PrefillExecutesTheForwardPassWithOneHeadRowPerSequence) {
  const LlmConfig model = small_llama(4);
  for (const ParallelConfig& plan : {ParallelConfig{}, ParallelConfig{.tp = 2, .pp = 2, .dp = 2}}) {
    const InferenceConfig config = prefill(3, 16, plan);
    const double sequences = 3.0 * plan.dp;
    const double executed =
        program_statistics(build_inference(model, config)).matrix_flops().base();
    const double linear = 2 * sequences * (16 * 4 * 49152.0 + 64 * 96);
    EXPECT_DOUBLE_EQ(executed, linear + sequences * 4 * 8 * 136 * 32);
    EXPECT_DOUBLE_EQ(model_flops(model, config).base(), linear + sequences * 4 * 8 * 128 * 32);
  }
}

TEST(BuildInference, DecodeExecutesTheModelFlops) {
  const LlmConfig model = small_llama(4);
  const InferenceConfig config = decode(3, 99, {.tp = 2, .dp = 2});
  // 6 sequences, one token each over 100 keys: 4 layers x 8 heads x 4 x 8 FLOPs a key.
  const double expected = 2 * 6 * (4 * 49152.0 + 64 * 96) + 6.0 * 4 * 8 * 100 * 32;
  EXPECT_DOUBLE_EQ(program_statistics(build_inference(model, config)).matrix_flops().base(),
                   expected);
  EXPECT_DOUBLE_EQ(model_flops(model, config).base(), expected);
}

TEST(BuildInference, RowsThatAreFilledUpAreThoseOfLayersAndNotOfAttentionOrTheHead) {
  const LlmConfig model = small_llama(4);
  InferenceConfig config = decode(3, 99, {.tp = 2});
  const double moved =
      program_statistics(build_inference(model, config)).transfers.at("all_reduce tp").bytes.base();
  config.layer_tokens = 32;
  const ProgramStatistics filled = program_statistics(build_inference(model, config));
  // 3 sequences, one token each over 100 keys: 4 layers x 8 heads x 4 x 8 FLOPs a key.
  EXPECT_DOUBLE_EQ(filled.matrix_flops().base(),
                   2 * (32 * 4 * 49152.0 + 3 * 64 * 96) + 3.0 * 4 * 8 * 100 * 32);
  EXPECT_DOUBLE_EQ(filled.transfers.at("all_reduce tp").bytes.base(), moved * 32 / 3);
  config.layer_tokens = 2;  // fewer than there are
  EXPECT_DOUBLE_EQ(
      program_statistics(build_inference(model, config)).transfers.at("all_reduce tp").bytes.base(),
      moved);
}

TEST(BuildInference, PrefillInTwoPiecesComputesTheSamePairs) {
  const LlmConfig model = small_llama(2);
  const auto executed = [&](std::int64_t tokens, std::int64_t before) {
    InferenceConfig config = prefill(1, tokens);
    config.kv_length = before;
    return program_statistics(build_inference(model, config)).matrix_flops().base();
  };
  const double head = 2.0 * 64 * 96;  // once per piece
  EXPECT_DOUBLE_EQ(executed(40, 0) + executed(24, 40), executed(64, 0) + head);
}

TEST(BuildInference, DecodeReadsAllWeightsOnce) {
  const LlmConfig model = library_model("llama_3_1_8b");
  const ProgramStatistics statistics = program_statistics(build_inference(model, decode(1, 1)));
  // The matrices of 8.03 B parameters less the embedding table, 2 bytes each: 15.0 GB; a token's
  // activations are small.
  const double matrices = 2 * static_cast<double>(count_parameters(model).active_matrices);
  EXPECT_NEAR(statistics.kernels.at("gemm").bytes.base() / matrices, 1, 0.001);
}

TEST(BuildInference, DecodeReadsTheExpertsThatTokensHit) {
  const LlmConfig model = small_moe(1);
  const auto bytes = [&](std::int64_t sequences) {
    return program_statistics(build_inference(model, decode(sequences, 1)))
        .kernels.at("grouped_gemm")
        .bytes.base();
  };
  // One token: 2 experts of 3 x 64 x 32 bf16 elements, and rows of 64 + 64 (up) and 32 + 64 (down).
  EXPECT_DOUBLE_EQ(bytes(1), 2 * 2.0 * (3 * 64 * 32) + 2 * 2.0 * (64 + 64 + 32 + 64));
  // Many tokens: all 8.
  EXPECT_NEAR(bytes(1000), 8 * 2.0 * (3 * 64 * 32) + 2000 * 2.0 * (64 + 64 + 32 + 64), 1);
}

TEST(BuildInference, ExpertsSpanTensorAndDataRanks) {
  const LlmConfig model = small_moe(2);
  const Program program = build_inference(model, decode(8, 16, {.tp = 2, .dp = 4, .ep = 8}));
  const auto exchange =
      std::find_if(program.transfers.begin(), program.transfers.end(),
                   [](const Transfer& t) { return t.kind == TransferKind::kDispatch; });
  ASSERT_NE(exchange, program.transfers.end());
  EXPECT_THAT(exchange->groups,
              ::testing::ElementsAre(::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7)));
  // 8 sequences over 2 tensor ranks, 2 copies of 64 bf16 elements.
  EXPECT_EQ(exchange->bytes.base(), 4.0 * 2 * 64 * 2);
}

TEST(BuildInference, SequenceParallelismMovesTheSameBytesInTwoHalves) {
  const LlmConfig model = small_llama(4);
  const auto bytes = [&](bool sp, const char* kind) {
    const Program program = build_inference(model, prefill(4, 16, {.tp = 2, .sp = sp}));
    const auto& transfers = program_statistics(program).transfers;
    return transfers.contains(kind) ? transfers.at(kind).bytes.base() : 0;
  };
  // Two all-reduces a layer and one for the embedding become reduce-scatters. The gathers are one
  // less by the head, which takes 4 of 64 tokens, and one more by the logits in both cases.
  const double buffer = 2 * 64.0 * 64 * 2, logits = 2 * 4.0 * 96 * 2, last = 2 * 4.0 * 64 * 2;
  EXPECT_DOUBLE_EQ(bytes(false, "all_reduce tp"), 9 * buffer);
  EXPECT_DOUBLE_EQ(bytes(true, "reduce_scatter tp"), 9 * buffer);
  EXPECT_DOUBLE_EQ(bytes(true, "all_gather tp"), 8 * buffer + logits + last);
  EXPECT_DOUBLE_EQ(bytes(false, "all_gather tp"), logits);
}

TEST(InferenceConfig, SaysWhatIsWrong) {
  const auto message = [](const InferenceConfig& config) -> std::string {
    try {
      require_supported(small_llama(4), config);
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(decode(1, 1)), "");
  EXPECT_THAT(message(decode(0, 1)), HasSubstr("batch"));
  EXPECT_THAT(message(decode(1, 1, {.tp = 3})), HasSubstr("parallel.tp"));
  EXPECT_THAT(message(decode(1, 1, {.pp = 2, .vpp = 2})), HasSubstr("parallel.vpp"));
  EXPECT_THAT(message(decode(1, 1, {.dp = 2, .ep = 2})), HasSubstr("has no experts"));
}

}  // namespace
}  // namespace orrery::inference_test
