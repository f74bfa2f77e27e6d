// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/kernel_model.h"
#include "tests/unit/machine/shipped_library.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::decode_test {
namespace {

const std::vector<std::string> kDevices = {"a100_sxm", "h100_sxm",    "h200_sxm", "b200_sxm",
                                           "gb200",    "ascend_910c", "tpu_v5p",  "v100_sxm",
                                           "h100_1g",  "rubin_r200",  "iphone_11"};

struct Step {
  std::int64_t sequences, context, heads, kv_heads, dim, window = 0;
  double element = 2;
};

Kernel kernel(const Step& s) {
  Kernel k;
  k.kind = KernelClass::kAttentionDecode;
  k.batch = s.sequences * s.heads;
  k.m = 1;
  k.n = s.context;
  k.k = s.dim;
  k.attention = {s.sequences, s.kv_heads, s.window, s.element < 2};
  const std::int64_t seen = s.window > 0 ? std::min(s.context, s.window) : s.context;
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  k.matrix_flops = Flops(4 * real(k.batch) * real(seen) * real(s.dim));
  k.read = Bytes(2 * real(k.batch) * real(s.dim) +
                 2 * real(s.sequences) * real(s.kv_heads) * real(seen) * real(s.dim) * s.element);
  k.written = Bytes(2 * real(k.batch) * real(s.dim));
  return k;
}

/// 16 bits in the format that the device has.
Precision wide_of(const AcceleratorConfig& on) {
  return on.compute.matrix.contains(Precision::kBf16) ? Precision::kBf16 : Precision::kFp16;
}

double time_us(const Step& step, const AcceleratorConfig& on) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  Kernel k = kernel(step);
  k.precision = wide_of(on);
  return family.time(k, on, family.priors(on, k.precision).data()).total_us;
}

double time_us(const Step& step, const std::string& name) {
  return time_us(step, shipped_accelerator(name));
}

/// All kernels of all libraries: groups of 1 to 64, both widths, with and without windows.
std::vector<Step> steps() {
  struct Heads {
    std::int64_t group, dim;
  };
  std::vector<Step> all;
  all.reserve(480);
  for (const Heads heads : {Heads{1, 64}, {8, 128}, {16, 64}, {32, 256}, {64, 64}}) {
    for (const std::int64_t sequences : {1, 16, 256}) {
      for (const std::int64_t context : {7, 512, 5000, 65536}) {
        for (const std::int64_t kv_heads : {1, 8}) {
          const Step step{sequences, context, kv_heads * heads.group, kv_heads, heads.dim};
          all.insert(all.end(), 4, step);
          all[all.size() - 3].window = all[all.size() - 1].window = 1024;
          all[all.size() - 2].element = all[all.size() - 1].element = 1;
        }
      }
    }
  }
  return all;
}

TEST(Decode, IsProportionalToTheCacheInTheLimit) {
  for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm", "ascend_910c", "v100_sxm"}) {
    for (const std::int64_t group : {1, 8}) {
      const double longer = time_us({256, 131072, 8 * group, 8, 128}, name);
      EXPECT_NEAR(longer / time_us({256, 65536, 8 * group, 8, 128}, name), 2, 0.04) << name;
      EXPECT_NEAR(longer / time_us({128, 131072, 8 * group, 8, 128}, name), 2, 0.04) << name;
    }
  }
}

TEST(Decode, AnEightBitCacheTakesHalfTheTimeInTheLimitWhereTheMemoryLimits) {
  const Step wide{256, 131072, 64, 8, 128}, narrow{256, 131072, 64, 8, 128, 0, 1};
  EXPECT_NEAR(time_us(wide, "b200_sxm") / time_us(narrow, "b200_sxm"), 2, 0.3);
}

TEST(Decode, TheWidthOfACacheIsReadFromItsBytesToo) {
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm");
  Kernel unmarked = kernel({16, 4096, 32, 4, 128, 0, 1});
  unmarked.attention.wide_queries = false;
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  EXPECT_EQ(family.time(unmarked, h200, family.priors(h200, Precision::kBf16).data()).total_us,
            time_us({16, 4096, 32, 4, 128, 0, 1}, h200));
}

TEST(Decode, ALongContextIsSpreadOverIdleUnits) {
  for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm"})
    for (const std::int64_t group : {1, 8, 64})
      EXPECT_GT(time_us({64, 65536, group, 1, 128}, name),
                4 * time_us({1, 65536, group, 1, 128}, name))
          << name << " " << group;
}

TEST(Decode, AWindowBoundsTheTime) {
  for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm", "tpu_v5p"}) {
    for (const double element : {1.0, 2.0}) {
      for (const std::int64_t group : {1, 8, 64}) {
        const auto at = [&](std::int64_t context, std::int64_t window) {
          return time_us({64, context, 4 * group, 4, 128, window, element}, name);
        };
        EXPECT_LT(at(65536, 1024), 0.5 * at(65536, 0)) << name << " " << group;
        EXPECT_LT(at(131072, 1024), 1.2 * at(16384, 1024)) << name << " " << group;
        EXPECT_EQ(at(512, 1024), at(512, 0)) << name << " " << group;
      }
    }
  }
}

TEST(Decode, NoKernelBeatsTheRooflineByMoreThanTheCacheHolds) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const double memory = on.memory.bandwidth.value.base() / on.dies / 1e6;
    // What misses of x bytes is x / (1 + (c/x)^4): all but 1.1 c at most, c up to twice the cache.
    const double cache = on.cache ? 2.2 * on.cache->capacity.value.base() / on.dies : 0;
    for (const Step& step : steps()) {
      const Kernel k = kernel(step);
      const double time = time_us(step, on);
      EXPECT_GT(time, (k.matrix_flops / matrix_peak(on, wide_of(on))).base() * 1e6) << name;
      EXPECT_GT(time, (k.read.base() - cache) / memory) << name;
    }
  }
}

TEST(Decode, EveryDeviceIsNearItsRooflineWhereThatRules) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const Step step{512, 32768, 64, 8, 128};
    const double memory = on.memory.bandwidth.value.base() / on.dies / 1e6;
    const double roofline =
        std::max(kernel(step).read.base() / memory,
                 (kernel(step).matrix_flops / matrix_peak(on, wide_of(on))).base() * 1e6);
    EXPECT_LT(time_us(step, on), 3 * roofline) << name;
  }
}

TEST(Decode, MoreBandwidthCacheOrClockNeverSlows) {
  for (const std::string& name : kDevices) {
    const AcceleratorConfig before = shipped_accelerator(name);
    std::vector<AcceleratorConfig> better(3, before);
    better[0].memory.bandwidth.value = before.memory.bandwidth.value * 1.2;
    if (better[1].cache) better[1].cache->capacity.value = before.cache->capacity.value * 1.2;
    better[2].compute.clock.value = before.compute.clock.value * 1.2;
    for (const Step& step : steps())
      for (const AcceleratorConfig& after : better)
        EXPECT_LE(time_us(step, after), time_us(step, before) * (1 + 1e-12)) << name;
  }
}

TEST(Decode, MoreUnitsSpeedUpWhatFillsThem) {
  for (const std::string& name : kDevices) {
    AcceleratorConfig on = shipped_accelerator(name);
    // Libraries split contexts and choose kernels by the number of units, not always for the
    // better; many sequences leave them no choice.
    for (const std::int64_t group : {1, 8, 64}) {
      const Step step{1024, 8192, 4 * group, 4, 128};
      double before = time_us(step, on);
      for (int i = 0; i < 8; ++i) {
        on.compute.units.value += on.dies;
        const double now = time_us(step, on);
        EXPECT_LE(now, before * (1 + 1e-12)) << name << " " << group;
        before = now;
      }
    }
  }
}

TEST(Decode, QueriesThatShareAHeadCostLessThanHeadsOfTheirOwn) {
  for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm"})
    EXPECT_LT(time_us({64, 8192, 64, 8, 128}, name), 0.5 * time_us({64, 8192, 64, 64, 128}, name));
}

TEST(Decode, EveryParameterMovesSomeKernel) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  const std::size_t count = family.parameters().size();
  std::vector<bool> moved(count);
  for (const char* name : {"a100_sxm", "h200_sxm", "b200_sxm"}) {
    const AcceleratorConfig on = shipped_accelerator(name);
    const std::vector<double> values = family.priors(on, Precision::kBf16);
    ASSERT_EQ(values.size(), count);
    for (const Step& step : steps()) {
      const Kernel k = kernel(step);
      const double time = family.time(k, on, values.data()).total_us;
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<double> other = values;
        other[i] *= 0.5;
        const bool same = family.time(k, on, other.data()).total_us == time;
        moved[i] = moved[i] || !same;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) EXPECT_TRUE(moved[i]) << family.parameters()[i].name;
}

TEST(Decode, PriorsLieInsideTheirLimits) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  for (const std::string& name : kDevices) {
    const std::vector<double> values = family.priors(shipped_accelerator(name), Precision::kBf16);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_GE(values[i], family.parameters()[i].lower) << family.parameters()[i].name;
      EXPECT_LE(values[i], family.parameters()[i].upper) << family.parameters()[i].name;
    }
  }
}

TEST(Decode, KernelsOfALibraryHavePartsOfTheirOwn) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  const AcceleratorConfig h200 = shipped_accelerator("h200_sxm"),
                          b200 = shipped_accelerator("b200_sxm");
  const auto part = [&](const Step& step, const AcceleratorConfig& on) {
    const std::vector<double> priors = family.priors(on, Precision::kBf16);
    return family.residual_point(kernel(step), on, priors.data())->part;
  };
  const Step grouped{64, 4096, 32, 4, 128}, narrow{64, 4096, 32, 4, 128, 0, 1};
  const Step single{64, 4096, 32, 32, 128}, few{1, 64, 32, 4, 128};
  EXPECT_NE(part(grouped, h200), part(narrow, h200));
  EXPECT_NE(part(grouped, h200), part(single, h200));
  // Too few blocks to fill a quarter of the units.
  EXPECT_EQ(part(few, h200), part(single, h200));
  EXPECT_EQ(part(grouped, b200), part(single, b200));
  EXPECT_NE(part(grouped, b200), part(grouped, h200));
}

TEST(Decode, ALibraryPutsAsManyQueriesTogetherAsItsRuleSays) {
  const KernelFamily& family = tile_family(KernelClass::kAttentionDecode);
  const std::size_t rule = parameter_index(family, "most_together");
  for (const char* name : {"h200_sxm", "b200_sxm"}) {
    const AcceleratorConfig on = shipped_accelerator(name);
    std::vector<double> values = family.priors(on, Precision::kBf16);
    const auto part = [&](std::int64_t heads) {
      return family.residual_point(kernel({64, 4096, heads, 1, 128}), on, values.data())->part;
    };
    EXPECT_EQ(part(32), part(16)) << name;
    EXPECT_NE(part(48), part(16)) << name;
    values[rule] = 1024;
    EXPECT_EQ(part(48), part(16)) << name;
  }
}

}  // namespace
}  // namespace orrery::decode_test
