// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/keys/rank_noise.h"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <initializer_list>

#include "sim/units/hash.h"

namespace orrery {
namespace {

/// What a draw is for: sequences of different purposes have nothing to do with each other.
enum class Purpose : std::uint64_t { kKernel = 1, kRank, kStraggler };

/// Uniform in (0, 1), the same for the same numbers.
double uniform(std::int64_t seed, Purpose purpose, std::initializer_list<std::uint64_t> numbers) {
  std::uint64_t state =
      static_cast<std::uint64_t>(seed) ^ (static_cast<std::uint64_t>(purpose) << 60);
  for (const std::uint64_t number : numbers) state = next_random(state) ^ number;
  return next_uniform(state);
}

/// Lognormal with mean 1 and that standard deviation.
double spread(double deviation, double uniform) {
  const double variance = std::log1p(deviation * deviation);
  const double z = std::sqrt(2.0) * boost::math::erf_inv(2 * uniform - 1);
  return std::exp(std::sqrt(variance) * z - variance / 2);
}

}  // namespace

const config::Schema<StragglerConfig>& StragglerConfig::schema() {
  static const auto schema =
      config::Schema<StragglerConfig>("stragglers",
                                      "host boards whose accelerators are slower than others")
          .optional("fraction", &StragglerConfig::fraction,
                    "share of the host boards that is slow, each drawn on its own; 0.005 in "
                    "MegaScale's cluster (arXiv 2402.15627, section 5.1)",
                    config::between(0, 1))
          .optional("ranks", &StragglerConfig::ranks, "ranks that are slow besides")
          .optional("slowdown", &StragglerConfig::slowdown,
                    "time of kernels there over that elsewhere; 1.1 in MegaScale's cluster (arXiv "
                    "2402.15627, section 6.3)",
                    config::between(1, 1000));
  return schema;
}

const config::Schema<NoiseConfig>& NoiseConfig::schema() {
  static const auto schema =
      config::Schema<NoiseConfig>("noise", "what makes kernels differ by rank and by run")
          .optional("kernels", &NoiseConfig::kernels,
                    "standard deviation of the runs of a kernel on one rank, over their mean; 0: "
                    "all are alike",
                    config::between(0, 1))
          .optional("ranks", &NoiseConfig::ranks,
                    "standard deviation of the time of accelerators of a kind for the same kernel, "
                    "over its mean, instead of the mean effect of power.spread; 0: all are alike. "
                    "Five clusters varied by 8 % on average, 22 % at most (arXiv 2208.11035)",
                    config::between(0, 1))
          .optional("stragglers", &NoiseConfig::stragglers, "host boards that are slower")
          .optional("seed", &NoiseConfig::seed, "number of the draw", config::between(0, 1e15));
  return schema;
}

RankNoise::RankNoise(const NoiseConfig& config, const RankLayout& layout, int ranks)
    : config_(config), ranks_(static_cast<std::size_t>(ranks), 1.0) {
  for (int rank = 0; rank < ranks; ++rank) {
    double& factor = ranks_[static_cast<std::size_t>(rank)];
    const auto number = static_cast<std::uint64_t>(rank);
    const auto board = static_cast<std::uint64_t>(layout.node(rank));
    if (config.ranks > 0)
      factor = spread(config.ranks, uniform(config.seed, Purpose::kRank, {number}));
    if (uniform(config.seed, Purpose::kStraggler, {board}) < config.stragglers.fraction)
      factor *= config.stragglers.slowdown;
  }
  for (const int rank : config.stragglers.ranks)
    ranks_.at(static_cast<std::size_t>(rank)) *= config.stragglers.slowdown;
}

double RankNoise::factor(int rank, KernelId /*kernel*/, std::uint64_t run) const {
  const double own = factor(rank);
  if (config_.kernels == 0) return own;
  const auto number = static_cast<std::uint64_t>(rank);
  return own *
         spread(config_.kernels, uniform(config_.seed, Purpose::kKernel, {number, step_, run}));
}

}  // namespace orrery
