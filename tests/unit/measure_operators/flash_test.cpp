// SPDX-License-Identifier: Apache-2.0
#include "device/flash.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "host/reference.h"

// The kernels' own code, compiled for the host: emulated/device/mma.cuh takes the place of the
// instructions.
namespace orrery::measure::flash_test {
namespace {

constexpr int kRows = 16;

struct Case {
  int keys = 0;            ///< keys of the sequence
  int first_position = 0;  ///< position of query row 0
  bool causal = false;
};

const RandomBuffer kQuery{Format::kBf16, Data::kRandom, 21};
const RandomBuffer kKey{Format::kBf16, Data::kRandom, 22};
const RandomBuffer kValue{Format::kBf16, Data::kRandom, 23};

/// Rows `first` on of a [row][head_dim] matrix, as the kernels' loaders put them.
void load(EmulatedWarp& warp, std::uint32_t tile, const RandomBuffer& from, int first, int rows,
          int head_dim) {
  for (int row = 0; row < rows; ++row) {
    for (int d = 0; d < head_dim; ++d) {
      const std::uint16_t code =
          encode_bf16(static_cast<float>(from.at((first + row) * head_dim + d)));
      const std::uint32_t at =
          tile + chunk_offset(row, d / 8, head_dim / 8) + static_cast<std::uint32_t>(d % 8 * 2);
      std::memcpy(warp.shared.data() + at, &code, sizeof(code));
    }
  }
}

/// All 16 rows x head_dim results of one warp, tile after tile.
template <int kHeadDim, int kKeys>
std::vector<float> emulate(const Case& test, float scale_log2) {
  constexpr std::uint32_t kQueryBytes = kRows * kHeadDim * 2, kTileBytes = kKeys * kHeadDim * 2;
  const int tiles = (test.keys + kKeys - 1) / kKeys;
  EmulatedWarp warp(kQueryBytes + static_cast<std::size_t>(2 * tiles) * kTileBytes);
  load(warp, 0, kQuery, 0, kRows, kHeadDim);
  for (int tile = 0; tile < tiles; ++tile) {
    const std::uint32_t slot = kQueryBytes + static_cast<std::uint32_t>(2 * tile) * kTileBytes;
    load(warp, slot, kKey, tile * kKeys, kKeys, kHeadDim);
    load(warp, slot + kTileBytes, kValue, tile * kKeys, kKeys, kHeadDim);
  }
  std::vector<float> out(static_cast<std::size_t>(kRows * kHeadDim));
  warp.run(0, [&] {
    FlashWarp<kHeadDim, kKeys> flash;
    flash.load_query(0, 0);
    const Mask mask{test.keys, test.first_position, test.causal};
    for (int tile = 0; tile < tiles; ++tile) {
      const std::uint32_t slot = kQueryBytes + static_cast<std::uint32_t>(2 * tile) * kTileBytes;
      flash.step(slot, slot + kTileBytes, tile * kKeys, mask, scale_log2);
    }
    const int lane = static_cast<int>(threadIdx.x);
    for (int half = 0; half < 2; ++half) {
      const float total = flash.total(half);
      for (int n = 0; n < kHeadDim / 8; ++n) {
        for (int i = 0; i < 2; ++i) {
          const int at = (lane / 4 + 8 * half) * kHeadDim + 8 * n + 2 * (lane % 4) + i;
          out[static_cast<std::size_t>(at)] = flash.out[n][2 * half + i] / total;
        }
      }
    }
  });
  return out;
}

template <int kHeadDim, int kKeys>
void expect_attention(const Case& test) {
  const double scale = 1 / std::sqrt(static_cast<double>(kHeadDim));
  const std::vector<float> got =
      emulate<kHeadDim, kKeys>(test, static_cast<float>(scale * std::log2(std::exp(1.0))));
  Comparison comparison;
  for (int r = 0; r < kRows; ++r) {
    AttentionRow row;
    row.query = kQuery;
    row.key = kKey;
    row.value = kValue;
    row.query_start = r * kHeadDim;
    row.kv_stride = kHeadDim;
    row.length = test.causal ? std::min(test.keys, test.first_position + r + 1) : test.keys;
    row.head_dim = kHeadDim;
    row.scale = scale;
    const std::vector<double> expected = attention(row);
    for (int d = 0; d < kHeadDim; ++d) {
      comparison.add(got[static_cast<std::size_t>(r * kHeadDim + d)],
                     expected[static_cast<std::size_t>(d)]);
    }
  }
  // Weights are rounded to bf16 (2^-9) before they meet the values.
  EXPECT_LT(comparison.relative_error(), 0.004);
  EXPECT_LT(comparison.worst_error(), 0.02);
}

TEST(FlashWarp, CausalPrefillFromTheFirstToken) { expect_attention<64, 64>({64, 0, true}); }

TEST(FlashWarp, CausalPrefillBehindAPrefixOverSeveralTiles) {
  expect_attention<128, 64>({150, 130, true});
}

TEST(FlashWarp, TilesBehindAllQueriesChangeNothing) { expect_attention<64, 64>({192, 3, true}); }

TEST(FlashWarp, DecodeOverAPartlyFilledTile) { expect_attention<128, 32>({77, 0, false}); }

}  // namespace
}  // namespace orrery::measure::flash_test
