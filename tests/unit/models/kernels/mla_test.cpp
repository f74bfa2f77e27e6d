// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::mla_test {
namespace {

const std::vector<std::string> kDevices = {"a100_sxm",    "h100_sxm", "h200_sxm",
                                           "b200_sxm",    "gb200",    "rubin_r200",
                                           "ascend_910c", "tpu_v5p",  "iphone_11"};

double real(std::int64_t value) { return static_cast<double>(value); }

Kernel prompt(std::int64_t sequences, std::int64_t query, std::int64_t heads,
              std::int64_t prefix = 0, bool narrow = false) {
  Kernel k;
  k.kind = KernelClass::kMlaPrefill;
  k.batch = sequences * heads;
  k.m = query;
  k.n = prefix + query;
  k.k = 192;
  k.attention = {sequences, heads, 0, narrow};
  const double pairs =
      real(k.batch) * (real(query) * real(prefix) + real(query) * real(query + 1) / 2);
  k.matrix_flops = Flops(2 * pairs * 320);
  return k;
}

Kernel token(std::int64_t sequences, std::int64_t context, std::int64_t heads, double element = 2) {
  Kernel k;
  k.kind = KernelClass::kMlaDecode;
  k.batch = sequences * heads;
  k.m = 1;
  k.n = context;
  k.k = 576;
  k.attention = {sequences, 1, 0, element < 2};
  k.matrix_flops = Flops(2 * real(k.batch) * real(context) * (576 + 512));
  k.read = Bytes(real(k.batch) * 576 * 2 + real(sequences) * real(context) * 576 * element);
  k.written = Bytes(real(k.batch) * 512 * 2);
  return k;
}

/// 16 bits in the format that the device has.
Precision wide_of(const AcceleratorConfig& on) {
  return on.compute.matrix.contains(Precision::kBf16) ? Precision::kBf16 : Precision::kFp16;
}

/// Blackwell's kernels of new tokens multiply in the format of the cache.
Precision products_of(const Kernel& kernel, const AcceleratorConfig& on) {
  const bool narrow = kernel.kind == KernelClass::kMlaDecode && kernel.attention.wide_queries;
  const bool converts = multiplies_apart(on);
  return narrow && converts && on.compute.matrix.contains(Precision::kFp8) ? Precision::kFp8
                                                                           : wide_of(on);
}

double time_us(Kernel kernel, const AcceleratorConfig& on) {
  kernel.precision = wide_of(on);
  const KernelFamily& prefill = tile_family(KernelClass::kMlaPrefill);
  const KernelFamily& decode = tile_family(KernelClass::kMlaDecode);
  const KernelFamily& family =
      kernel.kind == KernelClass::kMlaPrefill ? static_cast<const KernelFamily&>(prefill) : decode;
  return family.time(kernel, on, family.priors(on, kernel.precision).data()).total_us;
}

double time_us(const Kernel& kernel, const std::string& name) {
  return time_us(kernel, shipped_accelerator(name));
}

std::vector<Kernel> kernels() {
  std::vector<Kernel> all;
  all.reserve(300);
  for (const std::int64_t sequences : {1, 8, 128}) {
    for (const std::int64_t tokens : {1, 100, 512, 5000, 32768}) {
      for (const std::int64_t heads : {1, 16, 32, 64, 128}) {
        for (const double element : {1.0, 2.0}) {
          all.push_back(prompt(sequences, tokens, heads, 0, element < 2));
          all.push_back(token(sequences, tokens, heads, element));
        }
      }
    }
  }
  return all;
}

TEST(Mla, NoKernelBeatsTheRooflineByMoreThanTheCacheHolds) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const double memory = on.memory.bandwidth.value.base() / on.dies / 1e6;
    const double cache = on.cache ? 2.2 * on.cache->capacity.value.base() / on.dies : 0;
    for (const Kernel& k : kernels()) {
      const double time = time_us(k, on);
      EXPECT_GT(time, (k.matrix_flops / matrix_peak(on, products_of(k, on))).base() * 1e6) << name;
      EXPECT_GT(time, (k.read.base() - cache) / memory) << name;
    }
  }
}

TEST(Mla, EveryDeviceIsNearItsRooflineWhereThatRules) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const double memory = on.memory.bandwidth.value.base() / on.dies / 1e6;
    for (const Kernel& k : {prompt(8, 8192, 64), token(512, 32768, 64)}) {
      const double roofline = std::max(
          k.read.base() / memory, (k.matrix_flops / matrix_peak(on, wide_of(on))).base() * 1e6);
      EXPECT_LT(time_us(k, on), 3 * roofline) << name << " " << to_string(k.kind);
    }
  }
}

TEST(Mla, MoreBandwidthClockOrMatrixRateNeverSlows) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig before = shipped_accelerator(name);
    std::vector<AcceleratorConfig> better(3, before);
    better[0].memory.bandwidth.value = before.memory.bandwidth.value * 1.2;
    better[1].compute.clock.value = before.compute.clock.value * 1.2;
    for (auto& [precision, rate] : better[2].compute.matrix) rate.value = rate.value * 1.2;
    for (const Kernel& k : kernels())
      for (const AcceleratorConfig& after : better)
        EXPECT_LE(time_us(k, after), time_us(k, before) * (1 + 1e-12)) << name;
  }
}

TEST(Mla, DecodeIsProportionalToTheCacheInTheLimit) {
  for (const std::string& name : kDevices) {
    const double time = time_us(token(256, 131072, 16), name);
    EXPECT_NEAR(time / time_us(token(256, 65536, 16), name), 2, 0.04) << name;
    EXPECT_NEAR(time_us(token(2048, 8192, 16), name) / time_us(token(1024, 8192, 16), name), 2, 0.1)
        << name;
  }
}

TEST(Mla, DecodeGrowsWithHeadsInSteps) {
  // A block of Hopper's kernel takes 64 heads: one more is a second block for all sequences.
  const auto at = [](std::int64_t heads) { return time_us(token(256, 16384, heads), "h200_sxm"); };
  EXPECT_LT(at(64) / at(56), 1.12);
  EXPECT_GT(at(65) / at(64), 1.4);
  EXPECT_LT(at(72) / at(65), 1.02);
  // Few heads take no less time than most of a block.
  EXPECT_GT(at(1) / at(64), 0.75);
}

TEST(Mla, DecodeOnBlackwellPaysForTilesOfHeads) {
  // Blocks take 16 heads, and beyond 32 heads 64, or pairs of them 128: as one block of 64 is
  // faster than two of 16, so are 33 heads than 32 (measured: 64 are).
  const auto blackwell = [](std::int64_t heads) {
    return time_us(token(256, 16384, heads), "b200_sxm");
  };
  EXPECT_GT(blackwell(17) / blackwell(16), 1.3);
  EXPECT_LT(blackwell(32) / blackwell(17), 1.02);
  EXPECT_LT(blackwell(33) / blackwell(32), 0.8);
  EXPECT_LT(blackwell(64) / blackwell(33), 1.02);
  EXPECT_LT(blackwell(128) / blackwell(65), 1.02);
  EXPECT_GT(blackwell(129) / blackwell(128), 1.1);  // two pairs, the same latents
}

TEST(Mla, OneLongContextIsSharedByAllUnits) {
  for (const char* name : {"h200_sxm", "b200_sxm"})
    EXPECT_GT(time_us(token(64, 131072, 16), name), 8 * time_us(token(1, 131072, 16), name));
}

TEST(Mla, DecodeOnBlackwellMultipliesInTheFormatOfTheCache) {
  // Measured: 839 us, and 1,039 us of 16-bit products at their peak.
  const Kernel narrow = token(512, 16384, 128, 1);
  const AcceleratorConfig on = shipped_accelerator("b200_sxm");
  EXPECT_LT(time_us(narrow, on), (narrow.matrix_flops / matrix_peak(on, wide_of(on))).base() * 1e6);
  const AcceleratorConfig hopper = shipped_accelerator("h200_sxm");
  EXPECT_GT(time_us(narrow, hopper),
            (narrow.matrix_flops / matrix_peak(hopper, wide_of(hopper))).base() * 1e6);
}

TEST(Mla, DecodeOnBlackwellRunsLargeClustersTwice) {
  // 4 sequences of 4,096 tokens are 128 blocks in clusters of 8, 2 sequences 64. All blocks take
  // 512 tokens, those of half as long contexts too.
  const auto at = [](std::int64_t sequences, std::int64_t context) {
    return time_us(token(sequences, context, 16), "b200_sxm");
  };
  EXPECT_GT(at(4, 4096) - at(4, 2048), 4);
  EXPECT_LT(at(2, 4096) - at(2, 2048), 1);
}

TEST(Mla, RatiosOnBlackwellAreSharedByHeadsOfOneTile) {
  const KernelFamily& decode = tile_family(KernelClass::kMlaDecode);
  const AcceleratorConfig on = shipped_accelerator("b200_sxm");
  const auto point = [&](std::int64_t heads) {
    return *decode.residual_point(token(32, 4096, heads), on, nullptr);
  };
  EXPECT_EQ(point(1).at, point(8).at);
  EXPECT_EQ(point(9).at, point(16).at);
  EXPECT_NE(point(8).at, point(9).at);
  EXPECT_EQ(point(32).part, point(1).part);
  EXPECT_NE(point(64).part, point(32).part);
  EXPECT_NE(point(128).part, point(64).part);
}

TEST(Mla, LongerPromptsNeverTakeLess) {
  for (const char* name : {"h200_sxm", "b200_sxm"}) {
    double before = 0;
    for (std::int64_t query = 128; query <= 32768; query += 128) {
      const double now = time_us(prompt(1, query, 16), name);
      EXPECT_GE(now, before * 0.98) << query;  // a full last wave may end sooner than a ragged one
      before = now;
    }
  }
}

TEST(Mla, EarlierTokensOfAPromptCostTheirKeys) {
  const double alone = time_us(prompt(4, 2048, 64), "h200_sxm");
  const double after = time_us(prompt(4, 2048, 64, 14336), "h200_sxm");
  // Pairs: 2048 x 14336 and half of 2048 squared, 15 times the latter.
  EXPECT_GT(after, 5 * alone);
  EXPECT_LT(after, 15 * alone);
}

TEST(Mla, ATrainingStepBackTakesItsFlopsLonger) {
  Kernel backward = prompt(1, 8192, 64);
  const double forward = time_us(backward, "h200_sxm");
  backward.matrix_flops = backward.matrix_flops * 2.4;
  EXPECT_GT(time_us(backward, "h200_sxm"), 2.1 * forward);
  EXPECT_LT(time_us(backward, "h200_sxm"), 2.4 * forward);
}

TEST(Mla, TheWidthOfACacheIsReadFromItsBytesToo) {
  Kernel unmarked = token(16, 4096, 16, 1);
  unmarked.attention.wide_queries = false;
  EXPECT_EQ(time_us(unmarked, "h200_sxm"), time_us(token(16, 4096, 16, 1), "h200_sxm"));
}

/// Parameters that move the time of some kernel.
std::vector<bool> moved_by(const KernelFamily& family, KernelClass kind) {
  const std::size_t count = family.parameters().size();
  std::vector<bool> moved(count);
  for (const char* name : {"h200_sxm", "b200_sxm"}) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const std::vector<double> values = family.priors(on, Precision::kBf16);
    for (const Kernel& k : kernels()) {
      if (k.kind != kind) continue;
      const double time = family.time(k, on, values.data()).total_us;
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<double> other = values;
        other[i] *= 0.5;
        const bool same = family.time(k, on, other.data()).total_us == time;
        moved[i] = moved[i] || !same;
      }
    }
  }
  return moved;
}

TEST(Mla, EveryParameterMovesSomeKernel) {
  const KernelFamily& prefill = tile_family(KernelClass::kMlaPrefill);
  const KernelFamily& decode = tile_family(KernelClass::kMlaDecode);
  const std::vector<bool> by_prefill = moved_by(prefill, KernelClass::kMlaPrefill);
  for (std::size_t i = 0; i < by_prefill.size(); ++i)
    EXPECT_TRUE(by_prefill[i]) << prefill.parameters()[i].name;
  const std::vector<bool> by_decode = moved_by(decode, KernelClass::kMlaDecode);
  for (std::size_t i = 0; i < by_decode.size(); ++i)
    EXPECT_TRUE(by_decode[i]) << decode.parameters()[i].name;
}

TEST(Mla, PriorsLieInsideTheirLimits) {
  const KernelFamily& prefill = tile_family(KernelClass::kMlaPrefill);
  const KernelFamily& decode = tile_family(KernelClass::kMlaDecode);
  for (const KernelFamily* family : std::vector<const KernelFamily*>{&prefill, &decode}) {
    for (const std::string& name : kDevices) {
      const std::vector<double> values =
          family->priors(shipped_accelerator(name), Precision::kBf16);
      for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_GE(values[i], family->parameters()[i].lower) << family->parameters()[i].name;
        EXPECT_LE(values[i], family->parameters()[i].upper) << family->parameters()[i].name;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::mla_test
