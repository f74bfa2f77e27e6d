// SPDX-License-Identifier: Apache-2.0
// Each operator against FLOPs and bytes derived here by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/load.h"
#include "tests/unit/workloads/example_models.h"
#include "workloads/layers/layers.h"
#include "workloads/operators/operator.h"

namespace orrery::operators_test {
namespace {

struct Holder {
  config::OneOf<OperatorConfig> op;
  static const config::Schema<Holder>& schema() {
    static const auto schema =
        config::Schema<Holder>("holder", "of an operator").required("op", &Holder::op, "which");
    return schema;
  }
};

/// @throws config::ConfigError
config::OneOf<OperatorConfig> read(const std::string& keys) {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml("op: {" + keys + "}\n", "test.yaml", diagnostics);
  Holder holder = config::read<Holder>(node, diagnostics, config::default_library());
  diagnostics.throw_if_errors();
  return holder.op;
}

std::vector<Kernel> kernels(const std::string& keys, Precision precision = Precision::kBf16) {
  return read(keys)->kernels(precision);
}

Kernel only(const std::string& keys, Precision precision = Precision::kBf16) {
  const std::vector<Kernel> all = kernels(keys, precision);
  EXPECT_EQ(all.size(), 1U) << keys;
  return all.front();
}

std::string fault(const std::string& keys, Precision precision = Precision::kBf16) {
  try {
    kernels(keys, precision);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

double flops(const std::vector<Kernel>& all) {
  double sum = 0;
  for (const Kernel& kernel : all) sum += kernel.matrix_flops.base();
  return sum;
}

double bytes(const Kernel& kernel) { return (kernel.read + kernel.written).base(); }

TEST(Operators, WithoutAKindItIsAGemm) {
  EXPECT_EQ(read("m: 2, n: 3, k: 4").name, "gemm");
  EXPECT_EQ(read("kind: softmax, rows: 2, width: 3").name, "softmax");
}

TEST(Operators, AnUnknownKindIsSuggested) {
  EXPECT_THAT(fault("kind: gem, m: 1, n: 1, k: 1"), testing::HasSubstr("did you mean 'gemm'?"));
  EXPECT_THAT(fault("kind: gem, m: 1, n: 1, k: 1"), testing::HasSubstr("test.yaml:1:12"));
}

TEST(Operators, KeysOfAnotherKindAreUnknown) {
  EXPECT_THAT(fault("kind: softmax, rows: 2, width: 3, m: 4"),
              testing::HasSubstr("unknown key 'm' in softmax"));
  EXPECT_THAT(fault("kind: attention_prefill, query: 8, head: 4"),
              testing::HasSubstr("did you mean 'heads'?"));
  EXPECT_THAT(fault("kind: mlp, tokens: 4, hidden: 8"),
              testing::HasSubstr("missing key 'intermediate' in mlp"));
}

TEST(Operators, RelationsBetweenKeysHold) {
  const std::string prefill = "kind: attention_prefill, query: 8, heads: 6, ";
  EXPECT_THAT(fault(prefill + "kv_heads: 4"), testing::HasSubstr("kv_heads must divide heads"));
  EXPECT_THAT(fault(prefill + "causal: false, window: 4"),
              testing::HasSubstr("a window goes with a causal mask"));
  EXPECT_THAT(fault("m: 1, n: 1, k: 1, tile: [256]"), testing::HasSubstr("tile wants two sizes"));
  EXPECT_THAT(fault("kind: moe, tokens: 1, hidden: 8, expert_ffn: 8, top_k: 9, experts: 8"),
              testing::HasSubstr("top_k experts of a token must be among `experts`"));
}

TEST(Operators, GemmReadsEachOperandOnceInItsFormat) {
  const double products = 2.0 * 3 * 100 * 200 * 300;
  const std::pair<Precision, double> widths[] = {{Precision::kTf32, 4},     {Precision::kBf16, 2},
                                                 {Precision::kFp16, 2},     {Precision::kFp8, 1},
                                                 {Precision::kFp8Block, 1}, {Precision::kInt8, 1},
                                                 {Precision::kNvfp4, .5}};
  for (const auto& [precision, width] : widths) {
    const Kernel kernel = only("m: 100, n: 200, k: 300, batch: 3", precision);
    EXPECT_EQ(kernel.matrix_flops.base(), products);
    EXPECT_EQ(kernel.read.base(), 3 * (100 * 300 + 300 * 200) * width);
    EXPECT_EQ(kernel.written.base(), 3 * 100 * 200 * (width == 4 ? 4 : 2));
  }
}

TEST(Operators, PackedWeightsAreReadPacked) {
  const Kernel int4 = only("m: 16, n: 128, k: 256, weights: int4");
  EXPECT_EQ(int4.weights, (WeightFormat{4, false}));
  EXPECT_EQ(int4.read.base(), 16 * 256 * 2 + 256 * 128 / 2);
  EXPECT_EQ(only("m: 16, n: 128, k: 256, weights: int8").read.base(), 16 * 256 * 2 + 256 * 128);
  EXPECT_EQ(int4.precision, Precision::kBf16);
  EXPECT_THAT(fault("m: 1, n: 1, k: 1, weights: int4", Precision::kFp8),
              testing::HasSubstr("cannot be fp8"));
}

TEST(Operators, TwoOfFourWeightsAreHalfWithTwoBitsOfIndexEach) {
  const Kernel sparse = only("m: 16, n: 128, k: 256, sparsity: 2:4, tile: [256, 128]");
  const double kept = 256 * 128 / 2;
  EXPECT_EQ(sparse.read.base(), 16 * 256 * 2 + kept * 2 + kept * 2 / 8);
  EXPECT_EQ(sparse.matrix_flops.base(), 2.0 * 16 * 128 * 256);  // as if dense
  EXPECT_EQ(sparse.weights, (WeightFormat{0, true}));
  EXPECT_EQ(sparse.tile, (std::array<std::int64_t, 2>{256, 128}));
}

TEST(Operators, ANarrowGemmMayQuantiseItsInput) {
  const auto all = kernels("m: 16, n: 32, k: 64, quantize: true", Precision::kFp8);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0], only("kind: quantize, rows: 16, width: 64", Precision::kFp8));
  EXPECT_EQ(kernels("m: 16, n: 32, k: 64, quantize: true").size(), 1U);  // bf16 as it is
}

TEST(Operators, GroupedGemmReadsTheWeightsOfEveryExpert) {
  const Kernel kernel = only("kind: grouped_gemm, experts: 8, rows: 1000, n: 64, k: 32");
  EXPECT_EQ(kernel.matrix_flops.base(), 2.0 * 1000 * 64 * 32);
  EXPECT_EQ(kernel.read.base(), (1000 * 32 + 8 * 32 * 64) * 2);
  EXPECT_EQ(kernel.written.base(), 1000 * 64 * 2);
}

TEST(Operators, PrefillSeesAPrefixAndTheTokensBefore) {
  const Kernel kernel = only(
      "kind: attention_prefill, batch: 2, query: 10, prefix: 90, heads: 8, kv_heads: 2, "
      "head_dim: 64");
  double pairs = 0;
  for (int token = 1; token <= 10; ++token) pairs += 90 + token;
  EXPECT_EQ(kernel.matrix_flops.base(), 2 * 8 * pairs * 2 * (64 + 64));
  EXPECT_EQ(kernel.read.base(), 2.0 * (2 * 10 * 8 * 64 + 2 * 100 * 2 * (64 + 64)));
  EXPECT_EQ(kernel.written.base(), 2.0 * 2 * 10 * 8 * 64);
  EXPECT_EQ(kernel.attention, (AttentionShape{2, 2, 0, false}));
}

TEST(Operators, WithoutAMaskPrefillComputesTheSquare) {
  const std::string keys = "kind: attention_prefill, query: 100, heads: 4, head_dim: 64";
  EXPECT_EQ(only(keys + ", causal: false").matrix_flops.base(), 4.0 * 100 * 100 * 4 * 64);
  EXPECT_EQ(only(keys).matrix_flops.base(), 4.0 * 5050 * 4 * 64);
}

TEST(Operators, PrefillOverFp8RunsInFp8) {
  const Kernel kernel =
      only("kind: attention_prefill, query: 100, heads: 4, head_dim: 64, kv_precision: fp8");
  EXPECT_EQ(kernel.precision, Precision::kFp8);
  EXPECT_TRUE(kernel.attention.wide_queries);
  EXPECT_EQ(kernel.read.base(), 100 * 4 * 64 * (2 + 1 + 1));
}

TEST(Operators, DecodeReadsTheCacheOnceForAGroupOfHeads) {
  const Kernel kernel =
      only("kind: attention_decode, batch: 3, kv_length: 1000, heads: 32, kv_heads: 4");
  EXPECT_EQ(kernel.matrix_flops.base(), 3.0 * 32 * 1000 * 4 * 128);
  EXPECT_EQ(kernel.read.base(), 2.0 * 3 * (32 * 128 + 1000 * 4 * 256));
  const Kernel windowed = only(
      "kind: attention_decode, batch: 3, kv_length: 1000, heads: 32, kv_heads: 4, window: 100, "
      "kv_precision: fp8");
  EXPECT_EQ(windowed.matrix_flops.base(), 3.0 * 32 * 100 * 4 * 128);
  EXPECT_EQ(windowed.read.base(), 3.0 * (2 * 32 * 128 + 100 * 4 * 256));
  EXPECT_EQ(windowed.precision, Precision::kBf16);
}

// 16-bit queries of 32 x 128, keys and values of 4 heads x 1000 tokens x 256.
TEST(Operators, ACacheHasTheWidthOfTheProductsUnlessItIsSaid) {
  const std::string keys =
      "kind: attention_decode, batch: 3, kv_length: 1000, heads: 32, kv_heads: 4";
  const double queries = 3.0 * 32 * 128 * 2, elements = 3.0 * 1000 * 4 * 256;
  const auto read = [&](const std::string& more, Precision precision) {
    return only(keys + more, precision).read.base();
  };
  EXPECT_EQ(read("", Precision::kBf16), queries + 2 * elements);
  for (const Precision precision : {Precision::kFp8, Precision::kInt8, Precision::kNvfp4}) {
    EXPECT_EQ(read("", precision), queries + elements) << to_string(precision);
    EXPECT_EQ(read(", kv_precision: fp8", precision), queries + elements);
    EXPECT_EQ(read(", kv_precision: bf16", precision), queries + 2 * elements);
    // No library multiplies 8-bit queries by 16-bit keys.
    EXPECT_EQ(only(keys + ", kv_precision: bf16", precision).precision, Precision::kBf16);
  }
  EXPECT_EQ(only(keys, Precision::kFp8).precision, Precision::kFp8);
  EXPECT_EQ(only(keys, Precision::kInt8).precision, Precision::kInt8);
  EXPECT_EQ(only(keys, Precision::kNvfp4).precision, Precision::kFp8);
}

TEST(Operators, PromptsAndLatentsHaveTheWidthOfTheProductsToo) {
  const Kernel prompt =
      only("kind: attention_prefill, query: 100, heads: 4, head_dim: 64", Precision::kFp8);
  EXPECT_EQ(prompt.read.base(), 100 * 4 * 64 * (2 + 1 + 1));
  const Kernel latent = only("kind: mla_decode, kv_length: 1000, heads: 16", Precision::kFp8);
  EXPECT_EQ(latent.read.base(), 16 * 576 * 2 + 1000 * 576);
  const Kernel expanded = only("kind: mla_prefill, query: 100, heads: 16", Precision::kFp8);
  EXPECT_EQ(expanded.read.base(), 16.0 * 100 * (192 * 2 + 192 + 128));
}

TEST(Operators, SoftmaxTakesAnExponentialForEachPair) {
  EXPECT_EQ(only("kind: attention_prefill, query: 100, heads: 4").exponentials.base(), 4 * 5050);
  EXPECT_EQ(only("kind: mla_decode, batch: 3, kv_length: 1000, heads: 16").exponentials.base(),
            3 * 16 * 1000);
  EXPECT_EQ(only("kind: softmax, rows: 10, width: 30").exponentials.base(), 300);
  EXPECT_EQ(only("kind: gemm, m: 10, n: 20, k: 30").exponentials.base(), 0);
}

TEST(Operators, CachesOfUnequalLengthsAddUp) {
  const Kernel kernel =
      only("kind: attention_decode, batch: 4, kv_lengths: [1000, 50], heads: 32, kv_heads: 4");
  EXPECT_THAT(kernel.attention.lengths, testing::ElementsAre(1000, 50, 1000, 50));
  EXPECT_EQ(kernel.n, 525);
  EXPECT_EQ(kernel.batch, 4 * 32);
  EXPECT_EQ(kernel.matrix_flops.base(), 2.0 * 32 * (1000 + 50) * 4 * 128);
  EXPECT_EQ(kernel.read.base(), 2.0 * (4 * 32 * 128 + 2 * (1000 + 50) * 4 * 256));
  const Kernel latent = only("kind: mla_decode, kv_lengths: [1000, 50, 300], heads: 16");
  EXPECT_EQ(latent.attention.sequences, 3);  // one for each length
  EXPECT_EQ(latent.matrix_flops.base(), 16.0 * 1350 * 2 * (576 + 512));
  EXPECT_EQ(latent.read.base(), 2.0 * (3 * 16 * 576 + 1350 * 576));
}

TEST(Operators, LengthsThatDoNotDifferAreOne) {
  const std::string rest = "batch: 4, heads: 32, kv_heads: 4";
  EXPECT_EQ(only("kind: attention_decode, kv_lengths: [1000, 1000], " + rest),
            only("kind: attention_decode, kv_length: 1000, " + rest));
}

TEST(Operators, LengthsOfCachesHaveToFitTheBatch) {
  for (const std::string kind : {"attention_decode", "mla_decode"}) {
    const auto with = [&](const std::string& keys) {
      return fault("kind: " + kind + ", heads: 8, " + keys);
    };
    EXPECT_THAT(with("batch: 4, kv_lengths: [1, 2, 3]"),
                testing::HasSubstr("batch must be a multiple of the number of kv_lengths"));
    EXPECT_THAT(with("batch: 4"), testing::HasSubstr("wants either kv_length or kv_lengths"));
    EXPECT_THAT(with("kv_length: 8, kv_lengths: [8, 9]"),
                testing::HasSubstr("wants either kv_length or kv_lengths"));
    EXPECT_THAT(with("kv_lengths: [0, 9]"), testing::HasSubstr("'0' is out of bounds"));
  }
}

TEST(Operators, LatentAttentionIsExpandedOverPromptsAndAbsorbedInDecode) {
  const Kernel prefill = only("kind: mla_prefill, query: 100, heads: 16");
  EXPECT_EQ(prefill.matrix_flops.base(), 16.0 * 5050 * 2 * (192 + 128));
  EXPECT_EQ(prefill.read.base(), 2.0 * 16 * 100 * (192 + 192 + 128));
  const Kernel decode = only("kind: mla_decode, batch: 4, kv_length: 500, heads: 16");
  EXPECT_EQ(decode.matrix_flops.base(), 4.0 * 16 * 500 * 2 * (576 + 512));
  EXPECT_EQ(decode.read.base(), 2.0 * 4 * (16 * 576 + 500 * 576));
  EXPECT_EQ(decode.written.base(), 2.0 * 4 * 16 * 512);
}

TEST(Operators, MoeRoutesComputesAndAddsUp) {
  const auto all =
      kernels("kind: moe, tokens: 1000, hidden: 64, expert_ffn: 32, top_k: 2, experts: 8");
  std::vector<std::string> names;
  for (const Kernel& kernel : all) names.push_back(kernel.name);
  EXPECT_THAT(names, testing::ElementsAre("router", "expert choice", "permute", "expert up",
                                          "expert activation", "expert down", "combine add"));
  EXPECT_EQ(flops(all), 2.0 * 1000 * 64 * 8 + 2.0 * 2000 * 3 * 64 * 32);
  const auto shared = kernels(
      "kind: moe, tokens: 1000, hidden: 64, expert_ffn: 32, top_k: 2, experts: 8, shared_ffn: 16");
  EXPECT_EQ(flops(shared) - flops(all), 2.0 * 1000 * 3 * 64 * 16);
}

TEST(Operators, MlpHasTwoOrThreeMatrices) {
  const std::string keys = "kind: mlp, tokens: 10, hidden: 64, intermediate: 192";
  EXPECT_EQ(flops(kernels(keys)), 2.0 * 10 * 3 * 64 * 192);
  EXPECT_EQ(flops(kernels(keys + ", gated: false")), 2.0 * 10 * 2 * 64 * 192);
}

TEST(Operators, RowKernelsStreamTheirRows) {
  const double elements = 100.0 * 64;
  EXPECT_EQ(bytes(only("kind: rms_norm, rows: 100, width: 64")), elements * (2 + 2));
  EXPECT_EQ(bytes(only("kind: rms_norm, rows: 100, width: 64", Precision::kFp8)),
            elements * (2 + 1));
  EXPECT_EQ(bytes(only("kind: layer_norm, rows: 100, width: 64, residual: true")),
            elements * (2 + 2 + 2 + 2));
  EXPECT_EQ(bytes(only("kind: softmax, rows: 100, width: 64")), elements * (2 + 2));
  EXPECT_EQ(bytes(only("kind: cross_entropy, tokens: 100, vocabulary: 64")), elements * (2 + 4));
  EXPECT_EQ(bytes(only("kind: activation, rows: 100, width: 64")), elements * (4 + 2));
  EXPECT_EQ(bytes(only("kind: activation, rows: 100, width: 64, function: gelu")),
            elements * (2 + 2));
  EXPECT_EQ(bytes(only("kind: embedding, tokens: 100, hidden: 64")), elements * (2 + 2));
  EXPECT_EQ(bytes(only("kind: rotary, tokens: 100, heads: 6, kv_heads: 2, head_dim: 8")),
            elements * (2 + 2));
  EXPECT_EQ(bytes(only("kind: quantize, rows: 100, width: 64", Precision::kNvfp4)),
            elements * (2 + .5));
  EXPECT_GT(only("kind: layer_norm, rows: 100, width: 64").vector_flops.base(),
            only("kind: rms_norm, rows: 100, width: 64").vector_flops.base());
  EXPECT_THAT(fault("kind: quantize, rows: 100, width: 64"), testing::HasSubstr("not bf16"));
}

TEST(Operators, AdamReadsAndWritesItsStates) {
  const auto all = kernels("kind: optimizer, parameters: 1000");
  double moved = 0;
  for (const Kernel& kernel : all) moved += bytes(kernel);
  // Gradient to fp32 2 + 4, norm 4, clip 4 + 4; Adam 16 + 12; cast 4 + 2, gradient cleared 2.
  EXPECT_EQ(moved, 1000.0 * (2 + 4 + 4 + 4 + 4 + 16 + 12 + 4 + 2 + 2));
}

TEST(Operators, ACopyCrossesWhatItsDirectionSays) {
  const Kernel in = only("kind: copy_host_to_device, bytes: 1 MB");
  EXPECT_EQ(in.host.base(), 1e6);
  EXPECT_EQ(in.read.base(), 0);
  EXPECT_EQ(in.written.base(), 1e6);
  const Kernel out = only("kind: copy_device_to_host, bytes: 1 MB");
  EXPECT_EQ(out.read.base(), 1e6);
  EXPECT_EQ(out.written.base(), 0);
  const Kernel on = only("kind: copy_device_to_device, bytes: 1 MB");
  EXPECT_EQ(on.host.base(), 0);
  EXPECT_EQ(bytes(on), 2e6);
}

TEST(Operators, CopiesThatStartTogetherAreOneKernelForAllEngines) {
  const Kernel three = only("kind: copy_device_to_host, bytes: 1 MB, copies: 3");
  EXPECT_EQ(three.batch, 3);
  EXPECT_EQ(three.host.base(), 3e6);
  EXPECT_EQ(three.read.base(), 3e6);
  EXPECT_EQ(three.kind, KernelClass::kCopy);
  EXPECT_NE(only("kind: copy_device_to_host, bytes: 1 MB, engine: sm").kind, KernelClass::kCopy);
}

TEST(Operators, AProductLaunchesTheClustersThatItIsToldTo) {
  EXPECT_EQ(only("m: 64, n: 64, k: 64, cluster: 4").cluster, 4);
  EXPECT_EQ(only("m: 64, n: 64, k: 64").cluster, 0);
}

double matrix_flops(const std::vector<Kernel>& all, const std::string& name) {
  double sum = 0;
  for (const Kernel& kernel : all)
    if (kernel.name == name) sum += kernel.matrix_flops.base();
  return sum;
}

// 128 tokens are two chunks of 64; 4 heads of 8 columns of keys and 16 of values. A token
// multiplies with the 64 of its chunk, and its keys with a state of 8 x 16 three times: for what
// the state gives, for what is added to it, and for the output.
TEST(Operators, ADeltaRuleMultipliesInsideOfChunksAndWithStates) {
  const auto all =
      kernels("kind: delta_rule, query: 128, heads: 4, key_heads: 2, key_dim: 8, value_dim: 16");
  const double tokens = 128.0 * 4;
  EXPECT_EQ(matrix_flops(all, "delta key products"), 2 * tokens * 64 * 8);
  EXPECT_EQ(matrix_flops(all, "delta chunk values"), 2 * tokens * 64 * (8 + 16));
  EXPECT_EQ(matrix_flops(all, "delta states"), 2 * 2 * tokens * 8 * 16);
  EXPECT_EQ(matrix_flops(all, "delta outputs"), 2 * tokens * (8 * 16 + 64 * (8 + 16)));
}

TEST(Operators, DecaysByColumnAndKeysOfLengthOneAreKernelsOfTheirOwn) {
  const std::string rule = "kind: delta_rule, query: 128, heads: 4";
  EXPECT_EQ(kernels(rule + ", unit_keys: true").size(), kernels(rule).size() + 1);
  EXPECT_EQ(kernels(rule + ", decays: column").front().name, "delta decays");
}

// States of 3 sequences x 4 heads x 8 x 16 are read and written; a token has 4 x 8 columns of
// queries and as many of keys (a key head for each of values), 4 x 16 of values, and a decay and a
// step a head, 16 bits each; results are 4 x 16.
TEST(Operators, AnUpdateReadsAndWritesItsStates) {
  const double states = 3.0 * 4 * 8 * 16, columns = 2 * 4 * 8 + 4 * 16 + 2 * 4;
  const std::string update = "kind: delta_update, batch: 3, heads: 4, key_dim: 8, value_dim: 16";
  EXPECT_EQ(only(update).read.base(), states * 4 + 3 * columns * 2);
  EXPECT_EQ(only(update).written.base(), states * 4 + 3.0 * 4 * 16 * 2);
  EXPECT_EQ(bytes(only(update)) - bytes(only(update + ", state_precision: bf16")), 2 * states * 2);
}

// 256 tokens in chunks of 128; 4 heads of 8 columns in 2 groups with states of 16: C times B of a
// group's chunks; B times x, and C times that, for all; products with the 64.5 tokens of the chunk
// that a token sees on average.
TEST(Operators, AMambaScanMultipliesInsideOfChunksAndWithStates) {
  const auto all = kernels(
      "kind: mamba_scan, query: 256, heads: 4, groups: 2, head_dim: 8, state: 16, chunk: 128");
  EXPECT_EQ(matrix_flops(all, "mamba chunk products"), 2.0 * 256 * 2 * 128 * 16);
  EXPECT_EQ(matrix_flops(all, "mamba chunk state"), 2.0 * 256 * 4 * 8 * 16);
  EXPECT_EQ(matrix_flops(all, "mamba chunk scan"), 2.0 * 256 * 4 * 8 * (16 + 64.5));
}

TEST(Operators, AMambaUpdateReadsAndWritesItsStates) {
  const double states = 5.0 * 4 * 8 * 16, columns = 4 * 8 + 2 * 2 * 16 + 4;
  const Kernel update =
      only("kind: mamba_update, batch: 5, heads: 4, groups: 2, head_dim: 8, state: 16");
  EXPECT_EQ(update.read.base(), states * 4 + 5 * columns * 2);
  EXPECT_EQ(update.written.base(), states * 4 + 5.0 * 4 * 8 * 2);
}

// Each element once in and once out; an update also reads and writes the three inputs before it.
TEST(Operators, AShortConvolutionStreamsItsChannels) {
  const std::string conv = "kind: causal_convolution, batch: 2, channels: 64, query: ";
  EXPECT_EQ(bytes(only(conv + "10")), 2.0 * 10 * 64 * 2 * 2);
  EXPECT_EQ(bytes(only(conv + "1, update: true")), 2.0 * 64 * 2 * 2 + 2 * 2.0 * 64 * 3 * 2);
}

// The last two of 100 tokens see 99 and 100.
TEST(Operators, AnIndexerScoresAllEarlierTokens) {
  const std::string scores = "kind: index_scores, query: 2, kv_length: 100, heads: 4, head_dim: 8";
  EXPECT_EQ(only(scores).matrix_flops.base(), 2.0 * (99 + 100) * 4 * 8);
  EXPECT_EQ(kernels(scores + ", top_k: 16").back().name, "index selection");
}

TEST(Operators, ATokenAttendsToWhatItHasChosen) {
  const std::string sparse =
      "kind: sparse_attention, query: 4, heads: 8, kv_lora_rank: 32, "
      "rope_head_dim: 16, top_k: ";
  EXPECT_EQ(only(sparse + "50, kv_length: 1000").matrix_flops.base(),
            2.0 * 4 * 50 * 8 * (32 + 16 + 32));
  // Where there are fewer: 1, 2, 3 and 4.
  EXPECT_EQ(only(sparse + "50").matrix_flops.base(), 2.0 * 10 * 8 * (32 + 16 + 32));
}

/// The kernel of that name in a layer of small_llama, prefill of two sequences of 48.
Kernel of_layer(const std::string& name) {
  const LlmConfig model = small_llama(1);
  RankWork work;
  work.batch.phase = Phase::kPrefill;
  work.batch.sequences = 2;
  work.batch.query = work.batch.context = 48;
  const StepList steps = layer_forward(model, model.layers.front(), work);
  for (const Step& step : steps.steps())
    if (step.kernel() != nullptr && step.name() == name) return *step.kernel();
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

TEST(Operators, AreTheKernelsOfALayer) {
  EXPECT_EQ(
      only("kind: attention_prefill, batch: 2, query: 48, heads: 8, kv_heads: 4, head_dim: 8"),
      of_layer("attention"));
  const auto mlp = kernels("kind: mlp, tokens: 96, hidden: 64, intermediate: 192");
  ASSERT_EQ(mlp.size(), 3U);
  EXPECT_EQ(mlp[0], of_layer("gate-up"));
  EXPECT_EQ(mlp[1], of_layer("activation"));
  EXPECT_EQ(mlp[2], of_layer("down"));
  Kernel norm = only("kind: rms_norm, rows: 96, width: 64, residual: true");
  norm.name = "mlp norm";
  EXPECT_EQ(norm, of_layer("mlp norm"));
}

}  // namespace
}  // namespace orrery::operators_test
