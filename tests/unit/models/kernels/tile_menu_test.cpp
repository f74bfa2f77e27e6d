// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/device/tile_menu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "sim/config/diagnostics.h"
#include "sim/config/load.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::tile_menu_test {
namespace {

using namespace literals;
using ::testing::HasSubstr;

bool has(const TileMenu& menu, double rows, double columns) {
  return std::any_of(menu.begin(), menu.end(), [=](const Tile& tile) {
    return tile.rows == rows && tile.columns == columns;
  });
}

std::string refusal(const Kernel& kernel, const AcceleratorConfig& accelerator) {
  try {
    tile_menu(kernel, accelerator, {});
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(TileTraffic, OfTheNaiveProductReadsTwoElementsForEveryMultiplication) {
  const TileTraffic naive = tile_traffic(512, 1024, 256, {1, 1});
  EXPECT_EQ(naive.inputs + naive.weights, 2.0 * 512 * 1024 * 256);
}

TEST(TileTraffic, OfTilesFallsWithTheirRowsAndColumns) {
  // m n k (1 / bm + 1 / bn)
  const TileTraffic tiled = tile_traffic(4096, 8192, 1024, {128, 256});
  EXPECT_EQ(tiled.inputs + tiled.weights, 4096.0 * 8192 * 1024 * (1.0 / 128 + 1.0 / 256));
}

TEST(TileTraffic, OfOneTileIsEveryOperandOnce) {
  const TileTraffic one = tile_traffic(100, 200, 300, {128, 256});
  EXPECT_EQ(one.inputs, 100.0 * 300);
  EXPECT_EQ(one.weights, 200.0 * 300);
}

TEST(TileMenu, ResultsTakeHalfOfTheRegistersAtMost) {
  // 256 x 256 x 4 = 256 KiB of results: the whole register file of a Hopper SM, but what the tensor
  // memory of Blackwell is for.
  EXPECT_FALSE(has(tile_menu({}, shipped_accelerator("h200_sxm"), {}), 256, 256));
  EXPECT_TRUE(has(tile_menu({}, shipped_accelerator("h200_sxm"), {}), 256, 128));
  EXPECT_TRUE(has(tile_menu({}, shipped_accelerator("b200_sxm"), {}), 256, 256));
}

TEST(TileMenu, LessSharedMemoryLeavesSmallerTiles) {
  // 2 x (128 + 128) x 64 x 2 = 64 KiB; 128 x 64 takes 48 KiB.
  AcceleratorConfig small = shipped_accelerator("h200_sxm");
  small.core->shared_memory.value = Bytes(48 * 1024);
  EXPECT_FALSE(has(tile_menu({}, small, {}), 128, 128));
  EXPECT_TRUE(has(tile_menu({}, small, {}), 128, 64));
  // Weights of half the width leave room for more columns.
  EXPECT_TRUE(has(tile_menu({}, small, {2, 1}), 128, 128));
}

TEST(TileMenu, AllTilesWhereNothingIsKnownOfTheCore) {
  const TileMenu menu = tile_menu({}, shipped_accelerator("rubin_r200"), {});
  EXPECT_EQ(menu.end() - menu.begin(), 14);
}

TEST(TileMenu, WidenedWeightsHaveTilesOfFewRowsAndManyColumns) {
  Kernel kernel;
  EXPECT_FALSE(has(tile_menu(kernel, shipped_accelerator("h200_sxm"), {2, 0.5}), 16, 256));
  kernel.weights.bits = 4;
  EXPECT_TRUE(has(tile_menu(kernel, shipped_accelerator("h200_sxm"), {2, 0.5}), 16, 256));
}

TEST(TileMenu, ATileThatIsAskedForIsTheOnlyOne) {
  Kernel kernel;
  kernel.tile = {192, 128};
  const TileMenu menu = tile_menu(kernel, shipped_accelerator("h200_sxm"), {});
  EXPECT_EQ(menu.end() - menu.begin(), 1);
  EXPECT_TRUE(has(menu, 192, 128));
}

TEST(TileMenu, ATileThatDoesNotFitIsRefusedWithTheArithmetic) {
  AcceleratorConfig small = shipped_accelerator("b200_sxm");
  small.core->shared_memory.value = Bytes(48 * 1024);
  Kernel kernel;
  kernel.tile = {256, 256};
  EXPECT_THAT(refusal(kernel, small),
              HasSubstr("a tile of 256x256 with 2 stages of 64 bf16 elements needs 131,072 bytes; "
                        "the core has 48 KiB of shared memory"));
  EXPECT_THAT(
      refusal(kernel, shipped_accelerator("h200_sxm")),
      HasSubstr("a tile of 256x256 needs 262,144 bytes for its results; the core has 128 KiB "
                "of registers for results"));
}

TEST(TileMenu, ACoreThatHoldsNoTileIsRefused) {
  AcceleratorConfig tiny = shipped_accelerator("h200_sxm");
  tiny.core->shared_memory.value = Bytes(8 * 1024);
  EXPECT_THAT(refusal({}, tiny),
              HasSubstr("a tile of 16x64 with 2 stages of 64 bf16 elements needs "
                        "20,480 bytes; the core has 8 KiB"));
}

TEST(TileMenu, AGivenTileIsNeverMuchFasterThanTheLibrarysChoice) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  const auto values = tile_family(KernelClass::kGemm).priors(h200, Precision::kBf16);
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.m = 2048;
  kernel.n = 8192;
  kernel.k = 4096;
  const double chosen = tile_family(KernelClass::kGemm).time(kernel, h200, values.data()).total_us;
  kernel.tile = {128, 256};
  EXPECT_NEAR(tile_family(KernelClass::kGemm).time(kernel, h200, values.data()).total_us, chosen,
              0.1 * chosen);
  kernel.tile = {16, 64};  // 32,768 small tiles load eight times as much
  EXPECT_GT(tile_family(KernelClass::kGemm).time(kernel, h200, values.data()).total_us, 2 * chosen);
}

}  // namespace
}  // namespace orrery::tile_menu_test
