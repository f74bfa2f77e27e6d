// SPDX-License-Identifier: Apache-2.0
#include "device/mainloop.cuh"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "host/reference.h"

// The kernel's own code on emulated TMA, mbarriers and wgmma (emulated/device).
namespace orrery::measure::mainloop_test {
namespace {

const RandomBuffer kA{Format::kBf16, Data::kRandom, 31};
const RandomBuffer kB{Format::kBf16, Data::kRandom, 32};

std::vector<std::uint16_t> matrix(const RandomBuffer& from, int elements) {
  std::vector<std::uint16_t> result;
  for (int i = 0; i < elements; ++i) result.push_back(encode_bf16(static_cast<float>(from.at(i))));
  return result;
}

/// Computes all tiles_m x tiles_n tiles and compares every entry.
template <int kWarpgroups, int kBn>
void expect_product(int tiles_m, const MainloopShape& shape) {
  constexpr int kBm = 64 * kWarpgroups;
  const int m = tiles_m * kBm, n = shape.tiles_n * kBn, k = shape.k_steps * kMainloopK;
  const std::vector<std::uint16_t> a = matrix(kA, m * k), b = matrix(kB, n * k);
  std::vector<std::uint16_t> out(static_cast<std::size_t>(m * n), 0xFFFF);
  for (int block = 0; block < tiles_m * shape.tiles_n; ++block) {
    constexpr std::uint32_t kStart = 2048;  // shared memory need not start at 0
    const auto bytes = static_cast<std::size_t>(shape.stages * stage_bytes(kBm, kBn));
    EmulatedBlock threads(kStart + bytes, 128 * kWarpgroups + 32);
    threads.run(static_cast<unsigned>(block), [&] {
      mainloop_block<kWarpgroups, kBn>({a.data(), k, kBm}, {b.data(), k, kBn}, shape, out.data(),
                                       kStart);
    });
  }
  Comparison comparison;
  for (int row = 0; row < m; ++row) {
    for (int column = 0; column < n; ++column) {
      comparison.add(decode_bf16(out[static_cast<std::size_t>(row * n + column)]),
                     dot(kA, row * k, kB, column * k, k));
    }
  }
  EXPECT_NO_THROW(comparison.require(gemm_tolerance(Format::kBf16, k), "main loop"));
}

TEST(Mainloop, OneWarpgroupOverMoreStepsThanStages) { expect_product<1, 64>(1, {5, 2, 1}); }

TEST(Mainloop, TwoWarpgroupsShareTheTileOfB) { expect_product<2, 64>(1, {4, 3, 1}); }

TEST(Mainloop, BlocksComputeTheirOwnTiles) { expect_product<1, 64>(2, {1, 2, 2}); }

TEST(Mainloop, FewerStepsThanStages) { expect_product<1, 128>(1, {2, 4, 1}); }

}  // namespace
}  // namespace orrery::measure::mainloop_test
