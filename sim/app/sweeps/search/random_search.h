// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/app/sweeps/plan/random_axis.h"
#include "sim/app/sweeps/search/algorithm.h"

namespace orrery {

/// Genomes that are spread evenly, however many are taken: Sobol points shifted by a seed.
class SpreadGenomes {
 public:
  SpreadGenomes(std::vector<Gene> genes, std::int64_t seed);
  Genome next();

 private:
  std::vector<Gene> genes_;
  UnitPoints points_;
  std::uint64_t next_ = 0;
};

}  // namespace orrery
