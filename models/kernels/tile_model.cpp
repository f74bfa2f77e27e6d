// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/tile_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/machine/limits.h"

namespace orrery {
namespace {

void append(std::string& bytes, double number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append(std::string& bytes, std::int64_t number) {
  bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

AcceleratorConfig left_of(AcceleratorConfig accelerator, Contention contention) {
  ComputeConfig& compute = accelerator.compute;
  const int units =
      std::max(1, static_cast<int>(std::lround(contention.units * compute.units.value)));
  const double share = static_cast<double>(units) / compute.units.value;
  compute.units.value = units;
  for (auto& [precision, rate] : compute.matrix) rate.value *= share;
  compute.vector.value *= share;
  if (compute.special) compute.special->value *= share;
  accelerator.memory.bandwidth.value *= contention.memory;
  return accelerator;
}

std::string content_of(const BlockPlan& plan) {
  std::string bytes;
  bytes.reserve(64 * (plan.kinds.size() + 2) + 16 * plan.launch.size());
  for (const BlockKind& kind : plan.kinds) {
    for (const double number :
         {kind.fill_us, kind.pipe_us, kind.memory_bytes, kind.cache_bytes, kind.epilogue_us,
          kind.fixed_us, kind.memory_wait_us, kind.chain_us})
      append(bytes, number);
  }
  for (const BlockRun& run : plan.launch) {
    append(bytes, static_cast<std::int64_t>(run.kind));
    append(bytes, run.count);
  }
  const BlockMachine& machine = plan.machine;
  for (const std::int64_t number :
       {static_cast<std::int64_t>(plan.kinds.size()), plan.repeats, machine.units,
        machine.blocks_per_unit, machine.places, static_cast<std::int64_t>(machine.persistent)})
    append(bytes, number);
  for (const double number :
       {machine.memory_bytes_per_us, machine.cache_bytes_per_us, machine.unit_bytes_per_us,
        machine.memory_exponent, machine.cache_exponent})
    append(bytes, number);
  return bytes;
}

namespace {

/// Prices on an accelerator, or on what contention leaves of it.
class TilePrices final : public KernelPrices {
 public:
  TilePrices(std::shared_ptr<const CalibratedModel> model, const AcceleratorConfig& accelerator,
             Fidelity fidelity, Contention contention, TileMemo* memo)
      : model_(std::move(model)),
        accelerator_(accelerator),
        fidelity_(fidelity),
        contention_(contention),
        memo_(memo) {
    if (!contention.none()) left_ = left_of(accelerator, contention);
    closed_ = model_->bound(device());
  }
  TilePrices(const TilePrices&) = delete;  // closed_ points into left_
  TilePrices& operator=(const TilePrices&) = delete;

  KernelCost cost(const Kernel& kernel) override {
    KernelCost cost = closed_->cost(kernel);
    if (!wanted(kernel)) return cost;
    const auto [closed, plan] = closed_->structure(kernel);
    if (!plan || !wanted(kernel, *plan)) return cost;
    const TileResult result = play(kernel, *plan);
    const double body = plan->extra_us + plan->scale * result.duration_us;
    const double ratio = body / (closed.total_us - closed.launch_us);
    const Picoseconds played =
        cost.launch + to_picoseconds(to_seconds(cost.duration - cost.launch) * ratio);
    cost.duration = std::max(played, picoseconds_after(least_time(kernel, device())));
    cost.fidelity = Fidelity::kTile;
    cost.bound = limit_of(kernel, cost, device()).bound;
    return cost;
  }

  std::vector<double> draws(const Kernel& kernel, std::int64_t seed) override {
    return closed_->draws(kernel, seed);
  }

 private:
  const AcceleratorConfig& device() const { return left_ ? *left_ : accelerator_; }

  /// Told by the class alone: most kernels are decided before their blocks are made.
  ///
  /// Mean absolute error of closed form and tiles in %, all devices and precisions of the operator
  /// tables together, one row in nine; first on shape groups that were fitted, then on the others:
  ///   prefill with a window, one to three waves   4.41, 4.28 (575 rows)     4.51, 4.36 (384)
  ///   prefill without, one to three waves         4.44, 4.47 (1,995)        3.65, 3.62 (680)
  ///   prefill of more waves                       4.09, 4.07 (11,746)       3.51, 3.50 (4,936)
  ///   products of one to three waves              6.30, 6.30 (3,273)        6.12, 6.10 (1,231)
  ///   all products                                5.36, 5.36 (28,144)       5.31, 5.32 (10,454)
  /// Products of experts, H200, one row in ten, fitted shape groups only:
  ///   balanced                                    6.08, 6.06 (1,749 rows)
  ///   power laws                                  6.77, 6.82 (3,532)
  /// So tiles earn their time in short prefill with a window; where they differ by less than rows
  /// repeat, the closed form stays. Beside other kernels and for caches of unequal lengths nothing
  /// has been measured; there tiles see what a shared server holds up, and what the longest context
  /// does. New tokens over caches of equal lengths take the same time either way.
  bool wanted(const Kernel& kernel) const {
    if (fidelity_ != Fidelity::kAuto) return fidelity_ == Fidelity::kTile;
    const bool windowed =
        kernel.kind == KernelClass::kAttentionPrefill && kernel.attention.window > 0;
    return !contention_.none() || windowed || !kernel.attention.lengths.empty();
  }

  bool wanted(const Kernel& kernel, const BlockPlan& plan) const {
    if (fidelity_ != Fidelity::kAuto || !contention_.none()) return true;
    if (!kernel.attention.lengths.empty()) return true;
    std::int64_t blocks = 0;
    for (const BlockRun& run : plan.launch) blocks += run.count * plan.repeats;
    const std::int64_t places = plan.machine.units * plan.machine.blocks_per_unit;
    return blocks > places && blocks < 3 * places;
  }

  TileResult play(const Kernel& kernel, const BlockPlan& plan) const {
    const auto played = [&plan]() -> TileResult {
      const BlockSchedule schedule =
          play_blocks(plan.kinds, plan.launch, plan.machine, plan.repeats);
      return {schedule.duration_us, schedule.events};
    };
    if (memo_ == nullptr) return played();
    const TileQuestion question{kernel, device(), contention_, content_of(plan)};
    if (const auto known = memo_->find(question)) return *known;
    const TileResult result = played();
    memo_->keep(question, result);
    return result;
  }

  std::shared_ptr<const CalibratedModel> model_;
  const AcceleratorConfig& accelerator_;
  std::optional<AcceleratorConfig> left_;  ///< part of the accelerator left; none: all of it
  Fidelity fidelity_;
  Contention contention_;
  TileMemo* memo_;
  std::unique_ptr<CalibratedPrices> closed_;
};

}  // namespace

TileModel::TileModel(std::shared_ptr<const CalibratedModel> closed, Fidelity fidelity,
                     Contention contention, TileMemo* memo)
    : closed_(std::move(closed)), fidelity_(fidelity), contention_(contention), memo_(memo) {}

std::unique_ptr<KernelPrices> TileModel::on(const AcceleratorConfig& accelerator) const {
  return std::make_unique<TilePrices>(closed_, accelerator, fidelity_, contention_, memo_);
}

}  // namespace orrery
