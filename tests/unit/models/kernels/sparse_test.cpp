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
  const std::vector<double> slow = {0, 0.02, 1, 1};
  EXPECT_NEAR(time_us(chosen(4096, 16), h100, slow), time_us(chosen(4096, 64), h100, slow), 1e-6);
  EXPECT_NEAR(2 * time_us(chosen(4096, 64), h100, slow), time_us(chosen(4096, 128), h100, slow),
              1e-6);
}

// One instruction of Blackwell's matrix units takes 128 rows.
TEST(Sparse, FewerThan128HeadsAreNoFasterOnBlackwell) {
  const AcceleratorConfig b200 = shipped_accelerator("b200_sxm");
  const std::vector<double> slow = {0, 0.02, 1, 1};
  EXPECT_NEAR(time_us(chosen(4096, 32), b200, slow), time_us(chosen(4096, 128), b200, slow), 1e-6);
  Kernel narrow = chosen(4096, 32);
  narrow.attention.wide_queries = true;  // a cache of 8 bits has a kernel of 64 rows
  EXPECT_LT(time_us(narrow, b200, {0, 0.02, 1, 1}),
            time_us(chosen(4096, 32), b200, {0, 0.02, 1, 1}));
}

// FlashMLA's sparse prefill has 640 TFLOP/s on an H800 with 128 heads (its README).
TEST(Sparse, ManyTokensHaveThePublishedRate) {
  const AcceleratorConfig h800 = shipped_accelerator("h800_sxm");
  const Kernel kernel = chosen(4096, 128);
  const double us =
      time_us(kernel, h800, tile_family(KernelClass::kSparse).priors(h800, Precision::kBf16));
  EXPECT_NEAR(kernel.matrix_flops.base() / us * 1e6, 640e12, 15e12);
}

// A row of 131,072 scores, read twice by one of 132 units at 1/132 of what the L2 gives.
TEST(Sparse, ARowOfScoresIsOneUnitsWork) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const std::vector<double> ideal = {0, 1, 1, 1};
  const double one = time_us(selection(1, 131072), h100, ideal);
  EXPECT_NEAR(time_us(selection(132, 131072), h100, ideal), one, 0.5 * one);
  EXPECT_NEAR(time_us(selection(133, 131072), h100, ideal), 2 * one, 1e-6);
  EXPECT_GT(one, 5);
  EXPECT_LT(one, 50);
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
      EXPECT_GT(all, last) << name << " " << tokens;
      last = all;
    }
  }
}

}  // namespace
}  // namespace orrery::sparse_test
