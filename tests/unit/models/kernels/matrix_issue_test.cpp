// SPDX-License-Identifier: Apache-2.0
// Who starts a matrix instruction decides how kernels are priced; its rows alone do not.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/tiles/matrix_product.h"
#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"

namespace orrery::matrix_issue_test {
namespace {

Kernel product(Precision precision = Precision::kBf16) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.precision = precision;
  kernel.m = 300;
  kernel.n = kernel.k = 4096;
  kernel.matrix_flops = Flops(2.0 * 300 * 4096 * 4096);
  kernel.read = Bytes(2 * (300.0 * 4096 + 4096.0 * 4096));
  kernel.written = Bytes(2.0 * 300 * 4096);
  return kernel;
}

Kernel prefill() {
  Kernel kernel;
  kernel.kind = KernelClass::kAttentionPrefill;
  kernel.batch = 32;
  kernel.m = kernel.n = 1050;  // 17 blocks of 64 keys, 9 of 128
  kernel.k = 128;
  kernel.attention.kv_heads = 8;
  return kernel;
}

AcceleratorConfig h100() { return shipped_accelerator("h100_sxm"); }

AcceleratorConfig h100(std::optional<MatrixIssue> issue) {
  AcceleratorConfig device = h100();
  device.core->matrix_tile->issue = issue;
  return device;
}

Picoseconds time(const Kernel& kernel, const AcceleratorConfig& on) {
  static const CalibratedModel model(load_calibration(
      shipped_library().locate("calibrations", "h100_sxm", ""), shipped_library()));
  return model.cost(kernel, on).duration;
}

TEST(MatrixIssue, RowsOfAnInstructionAloneTellNoGeneration) {
  for (const int rows : {8, 16, 63, 65, 96, 128, 512}) {
    AcceleratorConfig made_up = h100();
    made_up.core->matrix_tile->rows = rows;
    for (const Kernel& kernel : {product(), product(Precision::kFp8Block), prefill()})
      EXPECT_EQ(time(kernel, made_up), time(kernel, h100())) << rows;
  }
}

TEST(MatrixIssue, EachGenerationHasProductsOfItsOwn) {
  const Picoseconds warp = time(product(), h100(MatrixIssue::kWarp));
  const Picoseconds warpgroup = time(product(), h100(MatrixIssue::kWarpgroup));
  const Picoseconds thread = time(product(), h100(MatrixIssue::kThread));
  EXPECT_NE(warp, warpgroup);
  EXPECT_NE(warpgroup, thread);
  EXPECT_NE(warp, thread);
  EXPECT_NE(time(prefill(), h100(MatrixIssue::kWarp)), time(prefill(), h100()));
}

TEST(MatrixIssue, TensorMemoryIsFedTwiceAsFastByTheCache) {
  AcceleratorConfig plain = h100(MatrixIssue::kThread);
  EXPECT_EQ(product_overlap(MatrixIssue::kThread).cache_bytes,
            2 * product_overlap(MatrixIssue::kWarpgroup).cache_bytes);
  EXPECT_GT(cache_rate(plain), cache_rate(h100()));
}

TEST(MatrixIssue, WhereItIsNotKnownAMatrixTileTellsNoMoreThanNone) {
  AcceleratorConfig bare = h100();
  bare.core->matrix_tile.reset();
  for (const Kernel& kernel : {product(), prefill()})
    EXPECT_EQ(time(kernel, h100(std::nullopt)), time(kernel, bare));
  EXPECT_EQ(time(product(), bare), time(product(), h100(MatrixIssue::kWarpgroup)));
  EXPECT_EQ(time(prefill(), bare), time(prefill(), h100(MatrixIssue::kWarp)));
}

TEST(MatrixIssue, EveryMatrixUnitOfTheLibraryTellsItsOwn) {
  int told = 0;
  for (const std::string& name : shipped_library().names("accelerators")) {
    const AcceleratorConfig device = shipped_accelerator(name);
    if (!device.core || !device.core->matrix_tile) continue;
    EXPECT_TRUE(matrix_issue(device)) << name;
    ++told;
  }
  EXPECT_GE(told, 20);
  EXPECT_EQ(matrix_issue(shipped_accelerator("v100_sxm")), MatrixIssue::kQuadPair);
  EXPECT_EQ(matrix_issue(shipped_accelerator("gb300")), MatrixIssue::kThread);
  EXPECT_EQ(matrix_issue(shipped_accelerator("ascend_910b")), MatrixIssue::kQueue);
  EXPECT_FALSE(matrix_issue(shipped_accelerator("gaudi3")));
}

}  // namespace
}  // namespace orrery::matrix_issue_test
