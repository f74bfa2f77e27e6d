// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::scan_test {
namespace {

// A layer of Nemotron 3 Nano on one rank: 64 heads of 64 in 8 groups, states of 128, chunks of 128.

/// States of all chunks from one to the next: fp32 in, 16 bits out.
Kernel passing(std::int64_t tokens) {
  Kernel kernel;
  kernel.kind = KernelClass::kScan;
  kernel.m = tokens / 128;
  kernel.n = 64 * 64 * 128;
  kernel.read = Bytes(4.0 * static_cast<double>(kernel.m * kernel.n));
  kernel.written = Bytes(2.0 * static_cast<double>(kernel.m * kernel.n));
  return kernel;
}

/// States of the tokens of each chunk.
Kernel states(std::int64_t tokens) {
  Kernel kernel;
  kernel.kind = KernelClass::kScan;
  kernel.batch = tokens / 128 * 64;
  kernel.m = 64;
  kernel.n = 128;
  kernel.k = 128;
  kernel.matrix_flops = Flops(2.0 * static_cast<double>(tokens) * 64 * 64 * 128);
  kernel.vector_flops = Flops(3.0 * static_cast<double>(tokens) * 64 * 128);
  kernel.read = Bytes(static_cast<double>(tokens) * (64 * 64 + 8 * 128) * 2);
  kernel.written = Bytes(static_cast<double>(tokens / 128) * 64 * 64 * 128 * 4);
  return kernel;
}

double time_us(const Kernel& kernel, const AcceleratorConfig& on, std::vector<double> values) {
  return tile_family(KernelClass::kScan).time(kernel, on, values.data()).total_us;
}

/// The same in a small block: see models/kernels/tiles/scan.cpp.
Kernel small(Kernel kernel) {
  kernel.tile = {64, 64};
  return kernel;
}

/// States of 64 columns of each head of one sequence, chunk after chunk of 64 tokens.
Kernel chain(std::int64_t heads, std::int64_t tokens) {
  Kernel kernel;
  kernel.kind = KernelClass::kScan;
  kernel.batch = heads;
  kernel.m = kernel.n = 64;
  kernel.k = tokens;
  kernel.matrix_flops = Flops(2.0 * 2 * static_cast<double>(heads * tokens) * 128 * 64);
  return small(kernel);
}

/// Values of all parameters, so that nothing limits a kernel but what a test sets.
struct Values {
  double launch = 0, matrix = 1, vector = 1, memory = 1, stream = 1, fused = 1, fused_block = 0,
         block = 0;
  operator std::vector<double>() const {
    return {launch, matrix, vector, memory, stream, fused, fused_block, block};
  }
};

// 8,192 tokens are 64 chunks: states of 64 x 64 x 128 fp32, read, and written in 16 bits: 201 MB
// over 3.35 TB/s at an efficiency of 1 are 60.1 us.
TEST(Scan, StatesPassAtTheMemorysBandwidth) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const Kernel kernel = passing(8192);
  const double bytes = 64.0 * 64 * 64 * 128 * 6, rate = h100.memory.bandwidth.value.base() / 1e6;
  EXPECT_EQ((kernel.read + kernel.written).base(), bytes);
  EXPECT_NEAR(time_us(kernel, h100, Values{.launch = 0.5}), 0.5 + bytes / rate, 1e-6);
  EXPECT_NEAR(time_us(kernel, h100, Values{.stream = 0.5}), 2 * bytes / rate, 1e-6);
  // Small blocks read what the kernel before has left in the L2.
  const double kept = h100.cache->capacity.value.base();
  EXPECT_NEAR(time_us(small(kernel), h100, Values{.block = 2}), 2 + (bytes - kept) / rate, 1e-6);
}

// States of other layers lie between two updates of the same ones.
TEST(Scan, UpdatesReadTheirStatesFromMemoryHoweverFewTheyAre) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  Kernel update = small(passing(128));
  update.exponentials = Flops(3 * 64);
  const double bytes = (update.read + update.written).base();
  EXPECT_NEAR(time_us(update, h100, Values{}), bytes / h100.memory.bandwidth.value.base() * 1e6,
              1e-6);
  update.exponentials = Flops();
  EXPECT_LT(time_us(update, h100, Values{}), bytes / h100.memory.bandwidth.value.base() * 1e6);
}

/// All of a chunk in one block, a head of a sequence each.
Kernel fused(std::int64_t heads, std::int64_t tokens) {
  Kernel kernel = chain(heads, tokens);
  kernel.tile = {64, 0};
  return kernel;
}

TEST(Scan, FusedRulesRunOneHeadAUnitInWholeWaves) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const Values slow{.fused = 0.02, .fused_block = 10};
  const double one = time_us(fused(1, 4096), h100, slow);
  const double unit = h100.compute.matrix.at(Precision::kBf16).value.base() / 132 / 1e6;
  EXPECT_NEAR(one, 10 + 2.0 * 2 * 4096 * 128 * 64 / unit / 0.02, 1e-6);
  EXPECT_NEAR(time_us(fused(132, 4096), h100, slow), one, 1e-6);
  EXPECT_NEAR(time_us(fused(133, 4096), h100, slow), 2 * one, 1e-6);
  EXPECT_NEAR(time_us(fused(1, 8192), h100, slow) - one, one - 10, 1e-6);
}

TEST(Scan, BlocksThatAreFewerThanUnitsHaveOneEach) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const Values slow{.matrix = 0.02};
  const double one = time_us(chain(1, 4096), h100, slow);
  EXPECT_NEAR(time_us(chain(132, 4096), h100, slow), one, 1e-6);
  EXPECT_NEAR(time_us(chain(264, 4096), h100, slow), 2 * one, 1e-6);
  EXPECT_NEAR(time_us(chain(1, 8192), h100, slow), 2 * one, 1e-6);
}

// 64 chunks x 64 heads, each with 64 x 128 results: two tiles. 8,192 blocks over 264 places are
// 31.03 waves, which take 32.
TEST(Scan, ProductsRunInWholeWaves) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  ASSERT_EQ(h100.compute.units.value, 132);
  const Kernel kernel = states(8192);
  EXPECT_EQ(kernel.batch, 64 * 64);
  EXPECT_EQ(kernel.m, 64);
  EXPECT_EQ(kernel.n, 128);
  // Slow enough units that nothing else limits it.
  const double slow = 0.02, fed = 0.19 * 2048 / 1000;  // decays scale operands in registers
  const double peak = h100.compute.matrix.at(Precision::kBf16).value.base();
  const double matrix = 2.0 * 8192 * 64 * 64 * 128 / (peak * slow * fed) * 1e6;
  const double vector = 3.0 * 8192 * 64 * 128 / (h100.compute.vector.value.base() * 1.0) * 1e6;
  EXPECT_NEAR(time_us(kernel, h100, Values{.matrix = slow}),
              (matrix + vector) * 32 / (8192.0 / 264), 1e-6 * matrix);
}

TEST(Scan, MoreTokensNeverTakeLessTime) {
  for (const char* name : {"h100_sxm", "b200_sxm", "mi355x", "ascend_910c"}) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const std::vector<double> priors = tile_family(KernelClass::kScan).priors(on, Precision::kBf16);
    double last = 0;
    for (std::int64_t tokens = 128; tokens <= 65536; tokens *= 2) {
      const double all = time_us(passing(tokens), on, priors) + time_us(states(tokens), on, priors);
      EXPECT_GT(all, last) << name << " " << tokens;
      last = all;
    }
  }
}

/// A recurrence of `blocks` heads of 64 with states of 64 x 64, 7 FLOPs an element and token.
Kernel recurrence(std::int64_t blocks, std::int64_t tokens) {
  Kernel kernel;
  kernel.kind = KernelClass::kScan;
  kernel.batch = blocks;
  kernel.m = tokens;
  kernel.n = kernel.k = 64;
  kernel.vector_flops = Flops(7.0 * 64 * 64 * static_cast<double>(blocks * tokens));
  return kernel;
}

// Four operands of 4 bytes for each of 4,096 elements are 512 clocks of 128 bytes; a block alone
// waits 540 besides.
TEST(Scan, ARecurrenceAloneOnAUnitWaitsAtEveryToken) {
  const AcceleratorConfig h100 = shipped_accelerator("h100_sxm");
  const double clock = h100.compute.clock.value.base() / 1e6;
  for (const std::int64_t blocks : {1, 132})
    EXPECT_NEAR(time_us(recurrence(blocks, 1000), h100, Values{}), 1000 * (512 + 540) / clock,
                1e-6);
  double before = 0;
  for (std::int64_t blocks = 1; blocks < 4096; blocks += 37) {
    const double now = time_us(recurrence(blocks, 1000), h100, Values{});
    EXPECT_GE(now, before * (1 - 1e-12));
    EXPECT_GE(now, static_cast<double>(blocks) / 132 * 1000 * 512 / clock * (1 - 1e-12));
    before = now;
  }
}

// BlinkDL/RWKV-CUDA pull request 14 on an A800: wkv5 of 8 sequences of 4,096 tokens and 4,096
// columns in bf16 takes 9.2 ms, and 7.1 ms once its loads are wider.
TEST(Scan, PublishedTimesOfARecurrenceAreMetWithinTheirSpread) {
  const AcceleratorConfig a100 = shipped_accelerator("a100_sxm");
  const double ms = time_us(recurrence(8 * 64, 4096), a100, Values{.launch = 3}) / 1000;
  EXPECT_GT(ms, 7.0);
  EXPECT_LT(ms, 9.2);
}

}  // namespace
}  // namespace orrery::scan_test
