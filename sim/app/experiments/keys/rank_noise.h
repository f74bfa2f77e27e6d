// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/config/declared.h"
#include "sim/replay/replay.h"

namespace orrery {

/// Host boards whose accelerators are slower than others, for as long as the run lasts.
struct StragglerConfig {
  double fraction = 0;     ///< share of the host boards, each drawn on its own
  std::vector<int> ranks;  ///< ranks that are slow besides
  double slowdown = 1;     ///< time of a kernel there over that elsewhere
  static const config::Schema<StragglerConfig>& schema();

  bool any() const { return slowdown > 1 && (fraction > 0 || !ranks.empty()); }
};

/// What makes kernels of one program take different times on accelerators of one kind. Transfers
/// have none of their own: they wait for the last rank.
struct NoiseConfig {
  double kernels = 0;  ///< standard deviation of the runs of a kernel, over their mean
  double ranks = 0;    ///< standard deviation of accelerators, over their mean
  StragglerConfig stragglers;
  std::int64_t seed = 1;
  static const config::Schema<NoiseConfig>& schema();

  bool any() const { return kernels > 0 || ranks > 0 || stragglers.any(); }
};

/// Draws of a NoiseConfig. A draw depends on the seed, the rank and the run alone, and grows with
/// its amplitude by one power: factors are lognormal with mean 1, exp(s z - s^2 / 2) with a
/// standard normal z and s^2 = ln(1 + sd^2).
class RankNoise final : public KernelVariation {
 public:
  RankNoise(const NoiseConfig& config, const RankLayout& layout, int ranks);

  /// From now on the runs are those of that step; ranks stay as they are.
  void set_step(int step) { step_ = static_cast<std::uint64_t>(step); }
  double factor(int rank, KernelId kernel, std::uint64_t run) const override;
  /// Factor of all kernels of a rank.
  double factor(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

 private:
  NoiseConfig config_;
  std::uint64_t step_ = 0;
  std::vector<double> ranks_;  ///< factors by rank
};

}  // namespace orrery
