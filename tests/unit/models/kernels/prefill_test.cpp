// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::prefill_test {
namespace {

struct Prompt {
  std::int64_t sequences, query, heads, kv_heads, dim, window = 0;
  Precision precision = Precision::kBf16;
  bool wide_queries = false;
  std::int64_t prefix = 0;  ///< earlier tokens
};

Kernel kernel(Prompt p) {
  Kernel k;
  k.kind = KernelClass::kAttentionPrefill;
  k.precision = p.precision;
  k.batch = p.sequences * p.heads;
  k.m = p.query;
  k.n = p.prefix + p.query;
  k.k = p.dim;
  k.attention = {p.sequences, p.kv_heads, p.window, p.wide_queries};
  const double pairs = static_cast<double>(k.batch) * static_cast<double>(p.query) *
                       (static_cast<double>(p.prefix) + static_cast<double>(p.query + 1) / 2);
  k.matrix_flops = Flops(4 * pairs * static_cast<double>(p.dim));
  k.vector_flops = Flops(5 * pairs);
  return k;
}

/// Values that a separate implementation found for an H200 (21 of them, in the order of
/// parameters(), and exponentials as fitted); its predictions below were made with the same
/// equations.
const std::vector<double> kH200 = {
    9.5164, 12.9379, 1.4825, 0.1936, 3.5712 / 4.8, 2.852, 2.037,  0.1847, 1.1329, 0.7528, 0.4449,
    0.9611, 0.7747,  3.1453, 2.4228, 0.0001,       0.001, 0.7033, 0.3208, 2523.3, 0.8389, 1};

double time_us(const Prompt& prompt, std::vector<double> values = kH200) {
  return tile_family(KernelClass::kAttentionPrefill)
      .time(kernel(prompt), shipped_accelerator("h200_sxm"), values.data())
      .total_us;
}

TEST(Prefill, AgreesWithASecondImplementation) {
  EXPECT_NEAR(time_us({1, 4096, 4, 1, 128}), 73.384, 0.01 * 73.4);
  EXPECT_NEAR(time_us({1, 6144, 4, 1, 128}), 141.803, 0.01 * 141.8);
  EXPECT_NEAR(time_us({2, 10240, 40, 40, 128}), 4387.41, 0.01 * 4387);
  EXPECT_NEAR(time_us({256, 64, 64, 8, 64}), 624.554, 0.01 * 625);
  EXPECT_NEAR(time_us({4, 8192, 64, 8, 64, 128}), 1322.876, 0.01 * 1323);
}

TEST(Prefill, NarrowFormatsAgreeToo) {
  std::vector<double> narrow = kH200;
  narrow[0] = 10.9841;  // launch of the 8-bit kernel
  narrow[5] = 2.4943;   // its tile
  EXPECT_NEAR(time_us({8, 2048, 16, 2, 256, 0, Precision::kFp8}, narrow), 524.348, 0.01 * 524);
  EXPECT_NEAR(time_us({1, 16384, 64, 8, 64, 128, Precision::kFp8, true}, narrow), 904.224,
              0.01 * 904);
}

TEST(Prefill, NoKernelBeatsTheMatrixPeak) {
  for (const std::int64_t query : {128, 1024, 8192, 32768}) {
    const Prompt prompt{4, query, 32, 8, 128};
    EXPECT_GT(time_us(prompt), (kernel(prompt).matrix_flops /
                                matrix_peak(shipped_accelerator("h200_sxm"), Precision::kBf16))
                                       .base() *
                                   1e6);
  }
}

double computed(Kernel prompt) {
  return tile_family(KernelClass::kAttentionPrefill)
      .time(prompt, shipped_accelerator("h200_sxm"), kH200.data())
      .computed;
}

// Tiles of 128 x 128 on an H200: row i of tiles takes i + 1 steps, 36 of 1,024 tokens, where
// 1,024 x 1,025 / 2 elements are seen; a window of 128 lies in two tiles, half of them seen.
TEST(Prefill, TilesThatTheMaskCutsAreComputedWhole) {
  EXPECT_NEAR(computed(kernel({1, 1024, 4, 4, 128})), 36 * 128 * 128 / (1024 * 1025 / 2.0), 1e-12);
  Kernel window = kernel({1, 8192, 4, 4, 128, 128});
  window.matrix_flops = Flops(4.0 * 4 * 128 * (8192 * 128 - 128 * 127 / 2.0));
  EXPECT_NEAR(computed(window), 2, 0.01);
  Kernel every_key = kernel({1, 1024, 4, 4, 128});
  every_key.matrix_flops = every_key.matrix_flops * 2;
  EXPECT_EQ(computed(every_key), 1);
  // 64 rows of zeros draw nothing.
  EXPECT_NEAR(computed(kernel({1, 64, 4, 4, 128})), 64 * 128 / (64 * 65 / 2.0), 1e-12);
}

TEST(Prefill, LongerPromptsNeverTakeLess) {
  double before = 0;
  for (std::int64_t query = 128; query <= 32768; query += 128) {
    const double now = time_us({1, query, 32, 8, 128});
    EXPECT_GE(now, before * 0.98) << query;  // a full last wave may end sooner than a ragged one
    before = now;
  }
}

TEST(Prefill, AWindowCostsNoMoreThanNone) {
  EXPECT_LT(time_us({1, 16384, 32, 8, 128, 1024}), time_us({1, 16384, 32, 8, 128}));
  // A window as long as the prompt is none.
  EXPECT_EQ(time_us({1, 4096, 32, 8, 128, 4096}), time_us({1, 4096, 32, 8, 128}));
}

/// The last `query` tokens of a prompt of `context`.
double time_of_end_us(std::int64_t query, std::int64_t context, std::int64_t window = 0) {
  Kernel end = kernel({1, query, 32, 8, 128, window});
  end.n = context;
  return tile_family(KernelClass::kAttentionPrefill)
      .time(end, shipped_accelerator("h200_sxm"), kH200.data())
      .total_us;
}

TEST(Prefill, EarlierKeysAreStepsOfEveryTile) {
  // 4 x 32 tiles of 128 rows, fewer than 132 units: the last tile meets 60 x 128 keys more. A step
  // is 1.1329 times 4 x 128 x 128 x 128 FLOP at 989.4 TFLOP/s / 132 = 1.1192 us, and 0.7528 times
  // 128 x 128 exponentials at 16 a clock of 1.98 GHz = 0.5172 us.
  const double step = 1.1329 * 1.1192 + 0.7528 * 0.5172;
  const double more = time_of_end_us(512, 512 + 7680) - time_of_end_us(512, 512);
  EXPECT_GT(more, 60 * step);
  EXPECT_LT(more, 1.15 * 60 * step);  // busier tensor cores cost some clock
}

Prompt after(std::int64_t prefix, Prompt prompt) {
  prompt.prefix = prefix;
  return prompt;
}

/// Steps of all pieces are those of the whole; each piece is launched, and starts, anew, and loses
/// less to the power limit.
TEST(Prefill, PiecesOfAPromptTakeTheTimeOfTheWhole) {
  const double whole = time_us({1, 32768, 32, 8, 128});
  double pieces = 0;
  for (std::int64_t done = 0; done < 32768; done += 4096)
    pieces += time_us(after(done, {1, 4096, 32, 8, 128}));
  EXPECT_NEAR(pieces / whole, 1, 0.03);
  // Twice the earlier tokens, twice the steps.
  const double more = time_us(after(131072, {1, 4096, 32, 8, 128})),
               less = time_us(after(65536, {1, 4096, 32, 8, 128}));
  EXPECT_NEAR(more / less, 2, 0.1);
}

TEST(Prefill, AWindowEndsWhatIsSeenOfEarlierTokens) {
  const Prompt windowed{1, 4096, 32, 8, 128, 1024};
  const double near = time_us(after(4096, windowed));
  EXPECT_EQ(time_us(after(65536, windowed)), near);
  EXPECT_LT(near, time_us(after(4096, {1, 4096, 32, 8, 128})));
  // The first tokens of a prompt see less than a window.
  EXPECT_GT(near, time_us(windowed));
  EXPECT_LT(near, 1.2 * time_us(windowed));
}

TEST(Prefill, WithoutAMaskWorkIsThatOfAllPairs) {
  const auto all_pairs = [](std::int64_t query, std::int64_t keys) {
    Kernel k = kernel({1, query, 32, 8, 128});
    k.n = keys;
    k.matrix_flops = Flops(4.0 * 32 * 128 * static_cast<double>(query * keys));
    return tile_family(KernelClass::kAttentionPrefill)
        .time(k, shipped_accelerator("h200_sxm"), kH200.data())
        .total_us;
  };
  // Half of the pairs lie above the diagonal.
  EXPECT_NEAR(all_pairs(8192, 8192) / time_us({1, 8192, 32, 8, 128}), 2, 0.1);
  EXPECT_NEAR(all_pairs(8192, 2048) * 4 / all_pairs(8192, 8192), 1, 0.1);
  EXPECT_NEAR(all_pairs(2048, 65536) / time_us(after(65536, {1, 2048, 32, 8, 128})), 1, 0.05);
}

TEST(Prefill, ABackwardPassTakesItsFlopsLonger) {
  Kernel backward = kernel({1, 8192, 32, 8, 128});
  backward.matrix_flops = backward.matrix_flops * 2.5;
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const double forward = time_us({1, 8192, 32, 8, 128});
  const double time =
      tile_family(KernelClass::kAttentionPrefill).time(backward, h200, kH200.data()).total_us;
  EXPECT_GT(time, 2.2 * forward);
  EXPECT_LT(time, 2.5 * forward);
}

}  // namespace
}  // namespace orrery::prefill_test
