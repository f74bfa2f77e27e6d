// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tiles/decode_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <utility>

#include "models/kernels/tile_model.h"
#include "sim/config/load.h"

namespace orrery::decode_blocks_test {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr const char* kDevices[] = {"a100_sxm", "h100_sxm", "h200_sxm", "b200_sxm"};

double real(std::int64_t value) { return static_cast<double>(value); }

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

Lengths equal(std::size_t sequences, std::int64_t length) { return Lengths(sequences, length); }

/// `few` of them have `length`, the others a fixed one; the long ones come last.
Lengths with_long_ones(std::size_t sequences, std::size_t few, std::int64_t length) {
  Lengths lengths(sequences, 1024);
  std::fill(lengths.end() - static_cast<std::ptrdiff_t>(few), lengths.end(), length);
  return lengths;
}

/// New tokens over caches of those lengths: n is their mean.
Kernel over(const Lengths& lengths, std::int64_t heads) {
  Kernel kernel;
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  const std::int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  kernel.batch = sequences * heads;
  kernel.m = 1;
  kernel.n = tokens / sequences;
  kernel.attention.sequences = sequences;
  const auto differs = [&](std::int64_t length) { return length != lengths.front(); };
  if (std::any_of(lengths.begin(), lengths.end(), differs)) kernel.attention.lengths = lengths;
  return kernel;
}

Kernel decode(const Lengths& lengths, std::int64_t heads, std::int64_t kv_heads,
              double element = 2) {
  Kernel kernel = over(lengths, heads);
  const double tokens = real(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  kernel.kind = KernelClass::kAttentionDecode;
  kernel.k = 128;
  kernel.attention.kv_heads = kv_heads;
  kernel.attention.wide_queries = element < 2;
  kernel.matrix_flops = Flops(4 * tokens * real(heads) * 128);
  kernel.read = Bytes(2 * real(kernel.batch) * 128 + 2 * tokens * real(kv_heads) * 128 * element);
  kernel.written = Bytes(2 * real(kernel.batch) * 128);
  return kernel;
}

Kernel latent(const Lengths& lengths, std::int64_t heads, double element = 2) {
  Kernel kernel = over(lengths, heads);
  const double tokens = real(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  kernel.kind = KernelClass::kMlaDecode;
  kernel.k = 576;
  kernel.attention.kv_heads = 1;
  kernel.attention.wide_queries = element < 2;
  kernel.matrix_flops = Flops(2 * tokens * real(heads) * (576 + 512));
  kernel.read = Bytes(real(kernel.batch) * 576 * 2 + tokens * 576 * element);
  kernel.written = Bytes(real(kernel.batch) * 512 * 2);
  return kernel;
}

Kernel latent_prompt(std::int64_t sequences, std::int64_t query, std::int64_t heads,
                     std::int64_t prefix) {
  Kernel kernel;
  kernel.kind = KernelClass::kMlaPrefill;
  kernel.batch = sequences * heads;
  kernel.m = query;
  kernel.n = prefix + query;
  kernel.k = 192;
  kernel.attention = {sequences, heads, 0, false};
  const double pairs =
      real(kernel.batch) * (real(query) * real(prefix) + real(query) * real(query + 1) / 2);
  kernel.matrix_flops = Flops(2 * pairs * 320);
  const double heads_of_all = real(sequences * heads);
  kernel.read = Bytes(heads_of_all * (real(query) * 192 + real(prefix + query) * 320) * 2);
  kernel.written = Bytes(heads_of_all * real(query) * 128 * 2);
  return kernel;
}

double us(const TileModel& model, const std::string& name, const Kernel& kernel) {
  return to_seconds(model.cost(kernel, device(name)).duration).base() * 1e6;
}

/// Time of a kernel that has the device for itself.
double time_us(const std::string& name, const Kernel& kernel, Fidelity fidelity) {
  static std::map<std::pair<std::string, Fidelity>, std::unique_ptr<TileModel>> models;
  std::unique_ptr<TileModel>& model = models[{name, fidelity}];
  if (!model) model = std::make_unique<TileModel>(calibrated(name), fidelity);
  return us(*model, name, kernel);
}

double time_us(const std::string& name, const Kernel& kernel, Fidelity fidelity,
               Contention contention) {
  return us(TileModel(calibrated(name), fidelity, contention), name, kernel);
}

/// Tiles over closed form.
double ratio(const std::string& name, const Kernel& kernel) {
  return time_us(name, kernel, Fidelity::kTile) / time_us(name, kernel, Fidelity::kClosed);
}

BlockPlan plan_of(const std::string& name, const Kernel& kernel) {
  return calibrated(name)->structure(kernel, device(name)).blocks.value();
}

BlockSchedule play(const BlockPlan& plan) {
  return play_blocks(plan.kinds, plan.launch, plan.machine, plan.repeats);
}

TEST(DecodeBlocks, EqualSequencesTakeWhatTheClosedFormSays) {
  for (const char* name : kDevices)
    for (const std::size_t sequences : {1U, 3U, 24U, 64U, 256U})
      for (const std::int64_t length : {100, 1000, 4096, 65536})
        for (const std::int64_t kv_heads : {1, 8, 32})
          for (const double element : {2.0, 1.0})
            EXPECT_NEAR(ratio(name, decode(equal(sequences, length), 32, kv_heads, element)), 1,
                        0.05)
                << name << " " << sequences << " " << length << " " << kv_heads << " " << element;
}

TEST(DecodeBlocks, EqualSequencesOverLatentsDoToo) {
  for (const char* name : kDevices)
    for (const std::size_t sequences : {1U, 3U, 24U, 64U, 256U})
      for (const std::int64_t length : {100, 1000, 4096, 65536})
        for (const std::int64_t heads : {8, 32, 128})
          for (const double element : {2.0, 1.0})
            EXPECT_NEAR(ratio(name, latent(equal(sequences, length), heads, element)), 1, 0.05)
                << name << " " << sequences << " " << length << " " << heads << " " << element;
}

TEST(DecodeBlocks, LongPromptsOfLatentAttentionTakeWhatTheClosedFormSays) {
  for (const char* name : kDevices)
    for (const std::int64_t query : {2048, 5000, 16384})
      for (const std::int64_t prefix : {0, 4096})
        EXPECT_NEAR(ratio(name, latent_prompt(4, query, 16, prefix)), 1, 0.05)
            << name << " " << query << " " << prefix;
}

TEST(DecodeBlocks, BlocksDoTheFlopsAndMoveTheBytesOfTheKernel) {
  Lengths many;  // more lengths than there are kinds of blocks
  for (std::int64_t i = 0; i < 300; ++i) many.push_back(100 + i * 7919 % 300 * 37);
  for (const char* name : kDevices)
    for (const Lengths& lengths : {equal(64, 4096), with_long_ones(64, 4, 50176), many})
      for (const Kernel& kernel : {decode(lengths, 32, 4), decode(lengths, 32, 4, 1),
                                   decode(lengths, 8, 8), latent(lengths, 16)}) {
        const BlockSchedule schedule = play(plan_of(name, kernel));
        const double bytes = (kernel.read + kernel.written).base();
        EXPECT_NEAR(schedule.flops, kernel.matrix_flops.base(), 1e-9 * schedule.flops) << name;
        EXPECT_NEAR(schedule.cache_bytes, bytes, 1e-9 * bytes) << name;
        EXPECT_LE(schedule.memory_bytes, bytes * (1 + 1e-9)) << name;  // the L2 keeps a part
      }
}

TEST(DecodeBlocks, FarBeyondTheL2AllBytesComeFromTheMemory) {
  const Kernel kernel = decode(with_long_ones(256, 16, 65536), 64, 8);
  const double bytes = (kernel.read + kernel.written).base();
  EXPECT_NEAR(play(plan_of("h200_sxm", kernel)).memory_bytes, bytes, 0.005 * bytes);
}

TEST(DecodeBlocks, BlocksOfLatentPromptsConserveBytesAndFlops) {
  const Kernel kernel = latent_prompt(2, 4096, 16, 0);
  const BlockSchedule schedule = play(plan_of("h200_sxm", kernel));
  EXPECT_NEAR(schedule.memory_bytes, (kernel.read + kernel.written).base(), 1);
  // Tiles of 128 rows and 64 keys: 2 + 4 + ... + 64 steps of a head.
  EXPECT_NEAR(schedule.flops, 32 * 2.0 * 128 * 64 * 320 * (32 * 33), 1e-9 * schedule.flops);
  EXPECT_GE(schedule.flops, kernel.matrix_flops.base());
}

TEST(DecodeBlocks, AFewLongSequencesHoldUpAllOthers) {
  // 262,144 tokens in either: equal, or in four sequences of 50,176 and sixty of 1,024.
  const Kernel ragged = decode(with_long_ones(64, 4, 50176), 64, 8);
  const Kernel same = decode(equal(64, 4096), 64, 8);
  ASSERT_EQ(ragged.n, same.n);
  ASSERT_EQ(ragged.read.base(), same.read.base());
  EXPECT_NEAR(time_us("h200_sxm", ragged, Fidelity::kClosed),
              time_us("h200_sxm", same, Fidelity::kClosed), 1e-3);
  EXPECT_GT(time_us("h200_sxm", ragged, Fidelity::kTile),
            1.5 * time_us("h200_sxm", same, Fidelity::kTile));
}

TEST(DecodeBlocks, TheLongestSequenceIsALowerLimitOfTheTime) {
  for (const char* name : kDevices)
    for (const std::int64_t length : {8192, 32768, 131072}) {
      const BlockPlan plan = plan_of(name, decode(with_long_ones(64, 1, length), 64, 8));
      double chain = 0, work = 0;
      for (const BlockKind& kind : plan.kinds) chain = std::max(chain, kind.chain_us);
      for (const BlockRun& run : plan.launch)
        work += static_cast<double>(run.count) * plan.kinds[run.kind].pipe_us;
      const double time = play(plan).duration_us;
      EXPECT_GE(time, chain * (1 - 1e-9)) << name << " " << length;
      EXPECT_GE(time, work / static_cast<double>(plan.machine.units) * (1 - 1e-9)) << name;
    }
}

TEST(DecodeBlocks, LongSequencesTakeLongerTheLaterTheyStart) {
  Lengths last = with_long_ones(64, 4, 50176);
  const Lengths first(last.rbegin(), last.rend());
  EXPECT_GT(time_us("h200_sxm", decode(last, 8, 1), Fidelity::kTile),
            1.05 * time_us("h200_sxm", decode(first, 8, 1), Fidelity::kTile));
}

TEST(DecodeBlocks, EvenSharesOfLatentsDoNotMindTheLengths) {
  // Hopper's kernel deals the steps of all sequences out in even shares.
  EXPECT_NEAR(ratio("h200_sxm", latent(with_long_ones(64, 4, 50176), 16)), 1, 0.02);
}

TEST(DecodeBlocks, PartsOfLatentsDoMindThem) {
  // Blackwell's blocks take whole contexts here, so the longest of 49 times the others counts.
  const Lengths lengths = with_long_ones(64, 4, 50176);
  EXPECT_GT(ratio("b200_sxm", latent(lengths, 16)), 1.5);
  const BlockPlan plan = plan_of("b200_sxm", latent(lengths, 16));
  double longest = 0;
  for (const BlockKind& kind : plan.kinds) longest = std::max(longest, kind.pipe_us);
  EXPECT_GE(play(plan).duration_us, longest);
}

TEST(DecodeBlocks, AutoTakesTilesForUnequalSequencesAlone) {
  const AcceleratorConfig& on = device("h200_sxm");
  const TileModel model(calibrated("h200_sxm"), Fidelity::kAuto);
  const KernelCost ragged = model.cost(decode(with_long_ones(64, 4, 50176), 64, 8), on);
  EXPECT_EQ(ragged.fidelity, Fidelity::kTile);
  EXPECT_EQ(ragged.provenance, Provenance::kExtrapolated);
  EXPECT_EQ(model.cost(decode(equal(64, 4096), 64, 8), on).fidelity, Fidelity::kClosed);
}

TEST(DecodeBlocks, WhatIsLeftToAKernelSetsItsTime) {
  const Kernel streaming = decode(equal(64, 8192), 64, 8, 2);
  const double alone = time_us("b200_sxm", streaming, Fidelity::kTile);
  EXPECT_NEAR(time_us("b200_sxm", streaming, Fidelity::kTile, {1, 0.5}) / alone, 2, 0.1);
  EXPECT_LT(time_us("b200_sxm", streaming, Fidelity::kTile, {0.5, 1}) / alone, 1.6);
  for (const Kernel& kernel : {decode(with_long_ones(64, 4, 50176), 64, 8),
                               latent(equal(64, 8192), 128), latent_prompt(2, 4096, 64, 0)})
    for (const char* name : kDevices)
      for (const Contention left : {Contention{0.5, 1}, Contention{1, 0.5}, Contention{0.5, 0.5}})
        EXPECT_GE(time_us(name, kernel, Fidelity::kTile, left),
                  time_us(name, kernel, Fidelity::kTile) * (1 - 1e-9))
            << name << " " << left.units << " " << left.memory;
}

}  // namespace
}  // namespace orrery::decode_blocks_test
