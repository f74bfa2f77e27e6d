// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tile_model.h"

#include <gtest/gtest.h>

#include <map>

#include "sim/config/load.h"
#include "tests/unit/models/kernels/tile_family.h"

namespace orrery::tile_model_test {
namespace {

const config::Library& library() {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  return library;
}

const AcceleratorConfig& device(const std::string& name) {
  static std::map<std::string, AcceleratorConfig> devices;
  const auto known = devices.find(name);
  if (known != devices.end()) return known->second;
  return devices[name] = config::load<AcceleratorConfig>(library().locate("accelerators", name, ""),
                                                         library(), "accelerators");
}

std::unique_ptr<CalibratedModel> calibrated(const std::string& name) {
  static std::map<std::string, Calibration> calibrations;
  if (calibrations.count(name) == 0)
    calibrations[name] = load_calibration(library().locate("calibrations", name, ""));
  return std::make_unique<CalibratedModel>(calibrations[name]);
}

Kernel product(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) {
  Kernel kernel;
  kernel.kind = KernelClass::kGemm;
  kernel.batch = batch;
  kernel.m = m;
  kernel.n = n;
  kernel.k = k;
  const auto b = static_cast<double>(batch), dm = static_cast<double>(m),
             dn = static_cast<double>(n), dk = static_cast<double>(k);
  kernel.matrix_flops = Flops(2 * b * dm * dn * dk);
  kernel.read = Bytes(2 * b * (dm * dk + dn * dk));
  kernel.written = Bytes(2 * b * dm * dn);
  return kernel;
}

/// bf16 attention of `heads` over `kv_heads`, 128 columns each.
Kernel prompt(std::int64_t sequences, std::int64_t query, std::int64_t heads, std::int64_t kv_heads,
              std::int64_t window = 0) {
  Kernel kernel;
  kernel.kind = KernelClass::kAttentionPrefill;
  kernel.batch = sequences * heads;
  kernel.m = kernel.n = query;
  kernel.k = 128;
  kernel.attention = {sequences, kv_heads, window, false};
  const auto q = static_cast<double>(query);
  const double pairs = static_cast<double>(kernel.batch) * q * (q + 1) / 2;
  kernel.matrix_flops = Flops(4 * pairs * 128);
  kernel.vector_flops = Flops(5 * pairs);
  const auto tokens = static_cast<double>(sequences) * q;
  kernel.read = Bytes(tokens * static_cast<double>(heads + 2 * kv_heads) * 128 * 2);
  kernel.written = Bytes(tokens * static_cast<double>(heads) * 128 * 2);
  return kernel;
}

double time_us(const KernelModel& model, const Kernel& kernel, const AcceleratorConfig& on) {
  return to_seconds(model.cost(kernel, on).duration).base() * 1e6;
}

double difference(const std::string& name, const Kernel& kernel) {
  const AcceleratorConfig on = device(name);
  const TileModel tiles(calibrated(name), Fidelity::kTile);
  const TileModel closed(calibrated(name), Fidelity::kClosed);
  EXPECT_EQ(tiles.cost(kernel, on).fidelity, Fidelity::kTile);
  EXPECT_EQ(closed.cost(kernel, on).fidelity, Fidelity::kClosed);
  return time_us(tiles, kernel, on) / time_us(closed, kernel, on) - 1;
}

BlockSchedule play(const BlockPlan& plan) {
  return play_blocks(plan.kinds, plan.launch, plan.machine, plan.repeats);
}

BlockPlan plan_of(const std::string& name, const Kernel& kernel) {
  return calibrated(name)->structure(kernel, device(name)).blocks.value();
}

constexpr const char* kDevices[] = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm"};

TEST(TileModel, LongProductsOfFullWavesTakeWhatTheClosedFormSays) {
  for (const char* name : kDevices)
    for (const std::int64_t m : {4096, 8192, 12288})
      for (const std::int64_t n : {4096, 7168, 28672})
        for (const std::int64_t k : {2048, 8192})
          EXPECT_NEAR(difference(name, product(m, n, k)), 0, 0.05)
              << name << " " << m << " " << n << " " << k;
}

TEST(TileModel, ProductsOfOneWaveDoToo) {
  for (const char* name : kDevices)
    for (const std::int64_t m : {1, 16, 64, 256})
      for (const std::int64_t n : {1024, 4096})
        EXPECT_NEAR(difference(name, product(m, n, 4096)), 0, 0.05) << name << " " << m << " " << n;
}

TEST(TileModel, LongPrefillTakesWhatTheClosedFormSays) {
  for (const char* name : kDevices)
    for (const std::int64_t query : {2048, 5000, 16384})
      for (const std::int64_t window : {0, 1024})
        EXPECT_NEAR(difference(name, prompt(4, query, 32, 8, window)), 0, 0.05)
            << name << " " << query << " " << window;
}

TEST(TileModel, BlocksOfAProductDoItsFlopsUpToTheirTiles) {
  for (const std::int64_t m : {1024, 4096, 4100}) {
    const Kernel kernel = product(m, 8192, 4096);
    const BlockPlan plan = plan_of("h200_sxm", kernel);
    const double flops = play(plan).flops;
    EXPECT_GE(flops, kernel.matrix_flops.base() * (1 - 1e-9)) << m;
    // Rows are rounded up to at most 256 of a tile.
    EXPECT_LE(flops, product((m + 255) / 256 * 256, 8192, 4096).matrix_flops.base() * (1 + 1e-9))
        << m;
  }
}

TEST(TileModel, BlocksOfAProductMoveTheTrafficOfTheModel) {
  // Far beyond the L2: every operand comes from the memory once.
  const Kernel kernel = product(8192, 16384, 16384);
  const BlockSchedule schedule = play(plan_of("h200_sxm", kernel));
  EXPECT_NEAR(schedule.memory_bytes, (kernel.read + kernel.written).base(),
              0.005 * schedule.memory_bytes);
  EXPECT_GE(schedule.cache_bytes, schedule.memory_bytes);  // tiles share operands through the L2
}

TEST(TileModel, BlocksOfPrefillConserveBytesAndFlops) {
  const Kernel kernel = prompt(2, 4096, 32, 8);
  const BlockPlan plan = plan_of("h200_sxm", kernel);
  const BlockSchedule schedule = play(plan);
  EXPECT_NEAR(schedule.memory_bytes, (kernel.read + kernel.written).base(), 1);
  // Tiles of 128 x 128: the diagonal ones count whole, 33 / 32 of half the square.
  EXPECT_NEAR(schedule.flops, 64 * 4.0 * 128 * 128 * 128 * (32 * 33 / 2), 1e-9 * schedule.flops);
  EXPECT_GE(schedule.flops, kernel.matrix_flops.base());
}

/// Time of `tiles` equal blocks of a product on an H200, by the values of another calibration whose
/// last wave takes as long as a full one.
double waves_us(std::int64_t tiles) {
  std::vector<double> values =
      tile_family(KernelClass::kGemm).priors(device("h200_sxm"), Precision::kBf16);
  values[parameter_index(tile_family(KernelClass::kGemm), "waves")] = 1;
  BlockPlan plan = tile_family(KernelClass::kGemm)
                       .blocks(product(8192, 8192, 4096), device("h200_sxm"), values.data())
                       .value();
  plan.launch = {{1, tiles}};
  return play(plan).duration_us;
}

TEST(TileModel, AProductTakesAnotherWaveWithOneTileMoreThanFillsTheLast) {
  const double one = waves_us(132), two = waves_us(264);
  EXPECT_NEAR(waves_us(133), two, 0.1 * one);
  EXPECT_GT(waves_us(133), 1.8 * one);
  EXPECT_LT(waves_us(265), waves_us(396) * (1 + 1e-9));
  EXPECT_GT(waves_us(265), two + 0.8 * one);
}

TEST(TileModel, StreamKSpreadsTheTilesOfTheLastWave) {
  // H200 in fp8: the last wave takes as long as its tiles fill it (waves: 0.001).
  Kernel kernel = product(4096, 7168, 8192);
  kernel.precision = Precision::kFp8;
  const BlockPlan plan = plan_of("h200_sxm", kernel);
  ASSERT_EQ(plan.launch.size(), 3U);
  EXPECT_EQ(plan.launch[2].count, 132);
  EXPECT_LT(plan.kinds[2].flops, plan.kinds[1].flops);
}

TEST(TileModel, TheSameOrderOnMoreUnitsOrBandwidthIsNeverSlower) {
  for (const Kernel& kernel :
       {product(4096, 8192, 8192), product(16, 8192, 8192), prompt(1, 6000, 16, 4)}) {
    const BlockPlan plan = plan_of("h200_sxm", kernel);
    double before = play(plan).duration_us;
    for (const std::int64_t more : {1, 12, 55, 132}) {
      BlockPlan larger = plan;
      larger.machine.units += more;
      const double now = play(larger).duration_us;
      EXPECT_LE(now, before * (1 + 1e-9)) << more;
      before = now;
    }
    before = play(plan).duration_us;
    for (const double factor : {1.1, 2.0, 8.0}) {
      BlockPlan faster = plan;
      faster.machine.memory_bytes_per_us *= factor;
      faster.machine.cache_bytes_per_us *= factor;
      const double now = play(faster).duration_us;
      EXPECT_LE(now, before * (1 + 1e-9)) << factor;
      before = now;
    }
  }
}

TEST(TileModel, AutoTakesTilesForShortPrefillWithAWindowAndBesideOtherKernels) {
  const AcceleratorConfig on = device("h200_sxm");
  const TileModel alone(calibrated("h200_sxm"), Fidelity::kAuto);
  EXPECT_EQ(alone.cost(prompt(1, 2048, 16, 4, 512), on).fidelity, Fidelity::kTile);
  EXPECT_EQ(alone.cost(prompt(1, 2048, 16, 4), on).fidelity, Fidelity::kClosed);
  EXPECT_EQ(alone.cost(prompt(1, 1024, 8, 8, 512), on).fidelity, Fidelity::kClosed);
  EXPECT_EQ(alone.cost(prompt(8, 8192, 32, 8, 512), on).fidelity, Fidelity::kClosed);
  EXPECT_EQ(alone.cost(product(512, 4096, 4096), on).fidelity, Fidelity::kClosed);
  Kernel grouped = product(512, 4096, 4096, 8);
  grouped.kind = KernelClass::kGroupedGemm;
  EXPECT_EQ(alone.cost(grouped, on).fidelity, Fidelity::kClosed);
  const TileModel beside(calibrated("h200_sxm"), Fidelity::kAuto, {0.8, 0.8});
  EXPECT_EQ(beside.cost(product(512, 4096, 4096), on).fidelity, Fidelity::kTile);
  EXPECT_EQ(beside.cost(grouped, on).fidelity, Fidelity::kTile);
}

TEST(TileModel, KernelsWithoutBlocksStayInClosedForm) {
  Kernel kernel;
  kernel.kind = KernelClass::kNormalization;
  kernel.read = kernel.written = Bytes(1e8);
  const TileModel tiles(calibrated("h200_sxm"), Fidelity::kTile);
  const KernelCost cost = tiles.cost(kernel, device("h200_sxm"));
  EXPECT_EQ(cost.fidelity, Fidelity::kClosed);
  EXPECT_EQ(cost.duration, calibrated("h200_sxm")->cost(kernel, device("h200_sxm")).duration);
}

TEST(TileModel, WhatIsLeftToAKernelSetsItsTime) {
  const AcceleratorConfig on = device("h200_sxm");
  const auto with = [&](const Kernel& kernel, Contention contention) {
    return time_us(TileModel(calibrated("h200_sxm"), Fidelity::kTile, contention), kernel, on);
  };
  const Kernel computing = product(8192, 8192, 8192), streaming = product(1, 16384, 16384);
  EXPECT_NEAR(with(computing, {0.5, 1}) / with(computing, {1, 1}), 2, 0.2);
  EXPECT_NEAR(with(computing, {1, 0.5}) / with(computing, {1, 1}), 1, 0.05);
  EXPECT_NEAR(with(streaming, {1, 0.5}) / with(streaming, {1, 1}), 2, 0.1);
  EXPECT_LT(with(streaming, {0.5, 1}) / with(streaming, {1, 1}), 1.5);
}

/// Counts what is played.
class CountingMemo final : public TileMemo {
 public:
  std::optional<TileResult> find(const TileQuestion& question) override {
    const auto known = results_.find(question.content);
    return known == results_.end() ? std::nullopt : std::optional(known->second);
  }
  void keep(const TileQuestion& question, const TileResult& result) override {
    ++played;
    results_[question.content] = result;
  }
  int played = 0;

 private:
  std::map<std::string, TileResult> results_;
};

TEST(TileModel, AMemoChangesNoTimeAndSavesThePlaying) {
  CountingMemo memo;
  const AcceleratorConfig on = device("h200_sxm");
  const TileModel with(calibrated("h200_sxm"), Fidelity::kTile, {}, &memo);
  const TileModel without(calibrated("h200_sxm"), Fidelity::kTile);
  for (int i = 0; i < 3; ++i) {
    for (const Kernel& kernel : {prompt(1, 4096, 32, 8), product(4096, 4096, 4096)})
      EXPECT_EQ(with.cost(kernel, on).duration, without.cost(kernel, on).duration);
  }
  EXPECT_EQ(memo.played, 2);
  AcceleratorConfig faster = on;  // the same name, other numbers
  faster.memory.bandwidth.value *= 2;
  with.cost(product(16, 8192, 8192), on);
  with.cost(product(16, 8192, 8192), faster);
  EXPECT_EQ(memo.played, 4);
}

}  // namespace
}  // namespace orrery::tile_model_test
