// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "models/kernels/device/family.h"
#include "models/kernels/tiles/grouped_product.h"
#include "models/kernels/tiles/matrix_product.h"

namespace orrery {
namespace {

using enum GroupedParameter;

/// All blocks of a kind.
struct Group {
  BlockKind kind;
  double steady = 0;  ///< us between others
  std::int64_t count = 0;
};

/// `tiles` of `rows` tokens each that move `bytes` together.
Group group_of(const GroupedJob& job, double tiles, double rows, double bytes, GroupedValues v) {
  const GroupedProduct& p = job.product;
  const GroupedChoice& c = job.choice;
  const GroupedTile t = grouped_tile(p, job.device, c.height, c.width, rows, v);
  const double steps = std::ceil(p.k * p.element / kGroupedStepBytes);
  Group group;
  group.steady = t.steady;
  group.count = std::llround(tiles);  // tables have the mean of many routings
  BlockKind& kind = group.kind;
  kind.pipe_us =
      steps * std::cbrt(t.matrix * t.matrix * t.matrix + t.latency * t.latency * t.latency);
  kind.cache_bytes = steps * t.load * job.device.unit_load;
  kind.memory_bytes = group.count > 0 ? bytes / static_cast<double>(group.count) : 0;
  kind.fixed_us = t.steady - t.loop + t.exposed;
  kind.epilogue_us = std::max(0.0, t.loop + t.epilogue - t.steady);
  kind.flops = 2 * c.height * c.width * p.k;
  return group;
}

/// The last block of each expert and column of tiles, with the rows that are left over, and those
/// that are full. The blocks of an expert run side by side, and what one of them reads of the
/// weights all wait for: its bytes are spread over them. Where the one waits alone, the mean error
/// of fitted rows of H200's table is 7.0 % instead of 6.6 %.
std::array<Group, 2> groups_of(const GroupedJob& job, GroupedValues v) {
  const GroupedProduct& p = job.product;
  const GroupedChoice& c = job.choice;
  const double columns = std::ceil(p.n / c.width);
  // A rule's height may be between those of which blocks are known: as many as hold the rows.
  const double blocks = std::max({c.blocks, p.rows / c.height, p.active});
  const double more = std::llround((blocks - p.active) * columns) > 0 ? blocks - p.active : 0;
  const double full = std::min(more * c.height, p.rows), rest = p.rows - full;
  const GroupedTraffic t = grouped_traffic(p, job.device, c.blocks, v);
  const double by_row = (t.rows + p.more_bytes) / p.rows;
  const double of_full = by_row * full + t.weights * more / (p.active + more);
  return {group_of(job, std::max(1.0, p.active * columns), std::min(c.height, rest / p.active),
                   t.all - of_full, v),
          group_of(job, more * columns, c.height, of_full, v)};
}

/// Full blocks and last ones in turns. 256 turns instead of 16 change the times of H200's table by
/// 0.07 % on average and 2 % at most, and take six times as long to play.
std::vector<BlockRun> launch_order(std::int64_t last, std::int64_t full) {
  constexpr std::int64_t kMostTurns = 16;
  const std::int64_t turns = full > 0 ? std::min({last, full, kMostTurns}) : 1;
  const auto until = [turns](std::int64_t count, std::int64_t turn) {
    return count / turns * turn + count % turns * turn / turns;
  };
  std::vector<BlockRun> launch;
  launch.reserve(static_cast<std::size_t>(2 * turns));
  for (std::int64_t i = 0; i < turns; ++i) {
    if (full > 0) launch.push_back({1, until(full, i + 1) - until(full, i)});
    launch.push_back({0, until(last, i + 1) - until(last, i)});
  }
  return launch;
}

/// What the closed form counts the last wave less than a whole one: its blocks in as many parts as
/// there are units. What `waves` says of the time that is not saved is left as latency.
void spread_last_wave(const std::array<Group, 2>& groups, std::int64_t units, double whole,
                      BlockPlan& plan) {
  const std::int64_t blocks = groups[0].count + groups[1].count;
  std::int64_t rest = blocks % units;
  if (whole > 0.999 || blocks < units || rest == 0) return;
  const auto parts = static_cast<double>(units), left = static_cast<double>(rest);
  BlockKind piece;
  while (rest > 0) {
    BlockRun& run = plan.launch.back();
    const std::int64_t taken = std::min(rest, run.count);
    const double part = static_cast<double>(taken) / parts;
    const BlockKind& kind = groups[run.kind].kind;
    piece.pipe_us += part * kind.pipe_us;
    piece.cache_bytes += part * kind.cache_bytes;
    piece.memory_bytes += part * kind.memory_bytes;
    piece.flops += part * kind.flops;
    piece.fixed_us += part * (kind.fixed_us + whole * (parts / left - 1) * groups[run.kind].steady);
    piece.epilogue_us = std::max(piece.epilogue_us, kind.epilogue_us);
    rest -= taken;
    run.count -= taken;
    if (run.count == 0) plan.launch.pop_back();
  }
  plan.launch.push_back({plan.kinds.size(), units});
  plan.kinds.push_back(piece);
}

/// The products of a mixture of experts, as TensorRT-LLM runs them: tiles of each expert's rows by
/// 128 or 256 features, none of them across experts, in waves over the chip, while the weights of
/// the active experts stream from memory. Tiles are chosen by the rows that an expert would have in
/// balance, not by those that it gets: CUTLASS profiles a menu, DeepGEMM (block-scaled formats)
/// follows a rule, so that a hot expert reads its weights once for every block of its rows. Beside
/// the products it prices what the fused operator adds to the permutation, activation and
/// combination of the graph: sorting copies by expert, quantising rows, gathering them. Every tile
/// takes up the operands of its expert (TMA descriptors of a grouped product), about 1 us, which is
/// what narrow experts are made of; results of the second product are added up for their tokens as
/// they are written, about twice as long as writing them.
class GroupedGemmFamily final : public KernelFamily {
 public:
  const std::vector<ParameterInfo>& parameters() const override {
    static const std::vector<ParameterInfo> table = {
        {"launch", "us", 0.1, 1000},      {"memory_efficiency", "1", 0.3, 1},
        {"cache_share", "1", 0.01, 5},    {"matrix_efficiency", "1", 0.1, 1.1},
        {"throttle", "1", 5e-4, 1.5},     {"throttle_time", "us", 10, 20000},
        {"load", "B/clk", 8, 512},        {"step_latency", "ns", 0.02, 8},
        {"fill", "us", 0.02, 10},         {"epilogue", "us", 0.02, 8},
        {"overlap_loss", "1", 0.01, 1},   {"waves", "1", 2e-3, 1},
        {"tail", "1", 2e-3, 1},           {"reread", "1", 2e-3, 1},
        {"exponent", "1", 1, 16},         {"expert", "us", 1e-3, 1},
        {"inputs", "1", 0.01, 60},        {"outputs", "1", 0.01, 60},
        {"sort_copies", "ns", 1e-3, 5},   {"sort_choices", "ns", 1e-4, 1},
        {"sort_rows", "ns", 1e-3, 20},    {"sort_passes", "us", 0.01, 20},
        {"down_epilogue", "us", 0.02, 8}, {"tile", "us", 1e-3, 5},
        {"units", "1", 1, 1e6, false},
    };
    return table;
  }

  std::vector<double> priors(const AcceleratorConfig& accelerator,
                             Precision precision) const override {
    // Fitted on Hopper's tables, rounded; epilogues drain at a unit's share of the memory.
    const double units = static_cast<double>(accelerator.compute.units.value) / accelerator.dies;
    const double memory = accelerator.memory.bandwidth.value.base() / accelerator.dies / 1e6;
    const bool scaled = precision == Precision::kFp8Block;
    const double drain = std::clamp(32768 * units / memory, 0.03, 1.3);  // 128 x 128 of 16 bits
    const bool narrow = element_bytes(precision) < 2 && !scaled;
    return {4.3,
            0.98,
            scaled ? 0.15 : 0.02,
            1.05,
            scaled ? 0.5 : 0.1,
            5000,
            80,
            narrow ? 0.15 : 0.8,
            1.0,
            (narrow ? 1.5 : 0.05) * drain,
            0.3,
            0.7,
            0.3,
            scaled ? 0.3 : 0.1,
            1.7,
            scaled ? 0.115 : 0.01,
            scaled ? 14.0 : 0.05,
            0.02,
            0.1,
            0.02,
            scaled ? 0.01 : 1.5,
            3.5,
            (scaled ? 2.7 : 1.8) * drain,
            0.95,
            units};
  }

  KernelTime time(const Kernel& kernel, const AcceleratorConfig& accelerator,
                  const double* values) const override {
    const GroupedValues v{values};
    const GroupedJob job = grouped_job(kernel, accelerator, v);
    const GroupedTime& product = job.choice.expected;
    const double body = product.body + job.passes + job.sorting;
    KernelTime time;
    time.launch_us = v[kLaunch];
    time.total_us = time.launch_us + body;
    // Blocks read their operands from the L2, clusters once for several of them as in products.
    const GroupedChoice& c = job.choice;
    const GroupedProduct& p = job.product;
    time.cache_bytes =
        c.blocks * std::ceil(p.n / c.width) * (c.height + c.width) * p.k * p.element / kMulticast;
    time.loaded_bytes = time.cache_bytes * kMulticast / kServed;
    time.memory_bytes = grouped_traffic(p, job.device, c.blocks, v).all;
    return time;
  }

  std::optional<ResidualPoint> residual_point(const Kernel& kernel, const AcceleratorConfig& /*on*/,
                                              const double* /*values*/) const override {
    const ExpertLoad load = grouped_load(kernel);
    const auto coordinate = [](double value) { return 0.5 * std::log2(std::max(1e-3, value)); };
    ResidualPoint point;
    point.part = load.copies > 0 ? 0 : 1;  // into the experts' width and back, other tiles
    point.at = {coordinate(load.expected),
                coordinate(load.rows / load.active),
                coordinate(load.experts),
                coordinate(static_cast<double>(kernel.n)),
                coordinate(static_cast<double>(kernel.k)),
                coordinate(load.blocks[0] * ExpertLoad::kHeights[0] / std::max(1.0, load.rows))};
    return point;
  }

  /// The tile that the closed form finds fastest in profiles, on persistent blocks: full ones, and
  /// one of each expert and column of tiles with the rows that are left over, the same for all
  /// experts. How far the library's choice is off that, on average, scales the result as in time().
  std::optional<BlockPlan> blocks(const Kernel& kernel, const AcceleratorConfig& accelerator,
                                  const double* values) const override {
    const GroupedValues v{values};
    const GroupedJob job = grouped_job(kernel, accelerator, v);
    const GroupedChoice& c = job.choice;
    const std::array<Group, 2> groups = groups_of(job, v);
    BlockPlan plan;
    plan.kinds = {groups[0].kind};
    if (groups[1].count > 0) plan.kinds.push_back(groups[1].kind);
    plan.launch = launch_order(groups[0].count, groups[1].count);
    BlockMachine& machine = plan.machine;
    machine.units = std::llround(job.device.units);
    spread_last_wave(groups, machine.units, v[kWaves], plan);
    machine.persistent = true;
    // The mean rate: what `tail` says of units that have run out of tiles is in it.
    const double bytes = grouped_traffic(job.product, job.device, c.blocks, v).all;
    machine.memory_bytes_per_us =
        c.of_tile.memory > 0 ? bytes / c.of_tile.memory : job.device.memory;
    machine.unit_bytes_per_us = job.device.unit_load;
    machine.memory_exponent = v[kExponent];
    machine.cache_exponent = 3;
    plan.launch_us = v[kLaunch];
    plan.scale = c.expected.body / c.of_tile.body;
    plan.extra_us = v[kFill] * plan.scale + job.passes + job.sorting;
    return plan;
  }
};

const RegisterTileFamily<GroupedGemmFamily> registered_grouped_gemm_tiles(
    KernelClass::kGroupedGemm,
    "products of experts: tiles of every expert's rows, waves, weights that are read once");

}  // namespace
}  // namespace orrery
