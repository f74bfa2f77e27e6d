// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sim/app/sweeps/plan/amount.h"
#include "sim/app/sweeps/plan/axis.h"

namespace orrery {

/// Where the values of a key are drawn from.
struct Draw {
  Amount low, high;
  bool log = false;
  bool integer = false;
  std::vector<config::Node> values;  ///< one of these; empty: between low and high
  config::Node written;              ///< node that it was read from
};

/// What is wrong with the ends of a draw; empty: nothing.
std::string fault_of(const Draw& draw);

/// How many points are drawn, and how.
struct RandomPoints {
  std::uint64_t n = 0;
  Sampler sampler = Sampler::kSobol;
  std::int64_t seed = 0;
};

/// Numbers in [0, 1) for points of some dimensions, each known by its index alone.
///  - Sobol: direction numbers of Joe and Kuo, "Constructing Sobol sequences with better
///    two-dimensional projections", SIAM J. Sci. Comput. 30 (2008), as Boost.Random has them (3,667
///    dimensions); the bits of each dimension are shifted by the seed, seed 0 leaves them.
///  - Latin hypercube: McKay, Beckman and Conover, Technometrics 21 (1979): each dimension visits
///    each of n strata once, in an order of its own, at a random place in it.
///  - Uniform: independent.
class UnitPoints {
 public:
  /// @throws config::ConfigError for more dimensions than there are direction numbers
  UnitPoints(RandomPoints points, std::size_t dimensions);
  ~UnitPoints();
  UnitPoints(const UnitPoints&) = delete;
  UnitPoints& operator=(const UnitPoints&) = delete;

  double at(std::uint64_t point, std::size_t dimension) const;

 private:
  struct Sobol;
  double sobol(std::uint64_t point, std::size_t dimension) const;

  RandomPoints points_;
  std::unique_ptr<Sobol> sobol_;
};

/// Drawn points, of which none is kept.
class RandomAxis final : public Axis {
 public:
  /// @param draws one for each key
  RandomAxis(std::vector<AxisKey> keys, std::vector<Draw> draws, RandomPoints points);
  std::uint64_t size() const override { return n_; }
  config::Node value(std::uint64_t step, std::size_t key) const override;
  bool is_drawn() const override { return true; }
  std::vector<config::Node> ends(std::size_t key) const override;

 private:
  std::uint64_t n_;
  std::vector<Draw> draws_;
  UnitPoints points_;
};

}  // namespace orrery
