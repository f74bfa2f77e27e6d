// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::sparse_test {
namespace {

/// Attention of 128 heads of one rank to 2,048 of 576 columns, of so many tokens.
Kernel chosen(std::int64_t tokens, std::int64_t heads) {
  Kernel kernel;
  kernel.kind = KernelClass::kSparse;
  kernel.batch = tokens;
  kernel.m = heads;
  kernel.n = 2048;
  kernel.k = 576;
  kernel.attention.sequences = tokens;
  const auto pairs = static_cast<double>(tokens * heads * 2048);
  kernel.matrix_flops = Flops(2 * pairs * (576 + 512));
  kernel.vector_flops = Flops(5 * pairs);
  kernel.exponentials = Flops(pairs);
  kernel.read = Bytes(static_cast<double>(tokens) * 2048 * 576 * 2);
  return kernel;
}

/// The 2,048 best of so many fp32 scores for each of `rows`.
Kernel selection(std::int64_t rows, std::int64_t scores) {
  Kernel kernel;
  kernel.kind = KernelClass::kSparse;
  kernel.batch = rows;
  kernel.m = 1;
  kernel.n = scores;
  kernel.read = Bytes(4.0 * static_cast<double>(rows * scores));
  kernel.written = Bytes(4.0 * 2048 * static_cast<double>(rows));
  return kernel;
}

double time_us(const Kernel& kernel, const AcceleratorConfig& on, std::vector<double> values) {
  return tile_family(KernelClass::kSparse).time(kernel, on, values.data()).total_us;
}

// 16 heads of a rank leave three quarters of a block's 64 rows empty.
TEST(Sparse, HeadsThatDoNotFillABlockTakeAsLongAsThoseThatDo) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const std::vector<double> slow = {0, 0.02, 1, 1, 1, 0};
  // 32 whole waves of 132 units.
  // But for the queries that they read and the results that they write.
  EXPECT_NEAR(time_us(chosen(4224, 16), h100, slow) / time_us(chosen(4224, 64), h100, slow), 1,
              0.002);
  EXPECT_NEAR(2 * time_us(chosen(4224, 64), h100, slow), time_us(chosen(4224, 128), h100, slow),
              1e-6);
}

// One instruction of Blackwell's matrix units takes 128 rows.
TEST(Sparse, FewerThan128HeadsAreNoFasterOnBlackwell) {
  const AcceleratorConfig b200 = shipped_accelerator("b200_sxm");
  const std::vector<double> slow = {0, 0.02, 1, 1, 1, 0};
  EXPECT_NEAR(time_us(chosen(4096, 32), b200, slow) / time_us(chosen(4096, 128), b200, slow), 1,
              0.002);
  Kernel narrow = chosen(4096, 32);
  narrow.attention.wide_queries = true;  // a cache of 8 bits has a kernel of 64 rows
  EXPECT_LT(time_us(narrow, b200, {0, 0.02, 1, 1, 1, 0}),
            time_us(chosen(4096, 32), b200, {0, 0.02, 1, 1, 1, 0}));
}

// FlashMLA's sparse prefill has 640 TFLOP/s on an H800 with 128 heads (its README).
TEST(Sparse, ManyTokensHaveThePublishedRate) {
  const AcceleratorConfig h800 = shipped_accelerator("h800_sxm");
  Kernel kernel = chosen(4096, 128);
  kernel.read = Bytes(2.0 * 4096 * 128 * 576);  // queries; keys are in the L2
  const double us =
      time_us(kernel, h800, tile_family(KernelClass::kSparse).priors(h800, Precision::kBf16));
  EXPECT_NEAR(kernel.matrix_flops.base() / us * 1e6, 640e12, 15e12);
}

// A row of 131,072 scores, read twice by one of 132 units at 1/132 of what the L2 gives.
TEST(Sparse, ARowOfScoresIsOneUnitsWork) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const std::vector<double> ideal = {0, 1, 1, 1, 1, 0};
  const double one = time_us(selection(1, 131072), h100, ideal);
  EXPECT_NEAR(time_us(selection(132, 131072), h100, ideal), one, 0.5 * one);
  EXPECT_NEAR(time_us(selection(133, 131072), h100, ideal), 2 * one, 1e-6);
  EXPECT_GT(one, 5);
  EXPECT_LT(one, 50);
}

// Of 132 units each has one block of 64 heads at a time: 132 tokens take as long as one.
TEST(Sparse, TokensOfAPromptTakeWholeWaves) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const std::vector<double> priors =
      tile_family(KernelClass::kSparse).priors(h200, Precision::kBf16);
  const auto of_prompt = [&](std::int64_t tokens) {
    Kernel kernel = chosen(tokens, 64);
    kernel.read = Bytes(2048 * 576 * 2);  // all tokens choose the same keys
    return time_us(kernel, h200, priors);
  };
  const double one = of_prompt(1);
  EXPECT_EQ(of_prompt(132), one);
  EXPECT_NEAR(of_prompt(133) - priors[0], 2 * (one - priors[0]), 1e-9);
  // Over a cache of 8 bits units share the keys of a new token.
  Kernel narrow = chosen(1, 64), more = chosen(132, 64);
  narrow.attention.wide_queries = more.attention.wide_queries = true;
  EXPECT_LT(time_us(narrow, h200, priors), time_us(more, h200, priors) / 4);
}

// Places that a short context leaves empty are worked on.
TEST(Sparse, AShortContextTakesAsLongAsAFullChoice) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const std::vector<double> slow = {0, 0.02, 1, 1, 1, 0};
  Kernel full = chosen(4224, 64), few = full;
  few.n = 128;
  few.matrix_flops = full.matrix_flops / 16;
  few.vector_flops = full.vector_flops / 16;
  few.exponentials = full.exponentials / 16;
  EXPECT_LT(15 * time_us(few, h200, slow), time_us(full, h200, slow));
  few.attention.places = 2048;
  EXPECT_NEAR(time_us(few, h200, slow), time_us(full, h200, slow), 1e-6);
}

// The key of DeepSeek-V4 has 512 columns, and its kernel blocks of 64 heads on Blackwell.
TEST(Sparse, ANarrowKeyHasBlocksOf64HeadsOnBlackwell) {
  const AcceleratorConfig b200 = shipped_accelerator("b200_sxm");
  const std::vector<double> slow = {0, 0.02, 1, 1, 1, 0};
  const auto narrow = [](std::int64_t heads) {
    Kernel kernel = chosen(148 * 32, heads);
    kernel.k = 512;
    return kernel;
  };
  EXPECT_NEAR(2 * time_us(narrow(64), b200, slow), time_us(narrow(128), b200, slow), 1e-6);
}

TEST(Sparse, MoreTokensNeverTakeLessTime) {
  for (const char* name : {"h100_sxm", "b200_sxm", "mi355x", "ascend_910c"}) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const std::vector<double> priors =
        tile_family(KernelClass::kSparse).priors(on, Precision::kBf16);
    double last = 0;
    for (std::int64_t tokens = 1; tokens <= 16384; tokens *= 2) {
      const double all =
          time_us(chosen(tokens, 16), on, priors) + time_us(selection(tokens, 32768), on, priors);
      EXPECT_GE(all, last) << name << " " << tokens;
      last = all;
    }
  }
}

}  // namespace
}  // namespace orrery::sparse_test
