// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/app/sweeps/plan/random_axis.h"
#include "sim/app/sweeps/sweep_config.h"

namespace orrery {

/// One dimension that is searched.
struct Gene {
  std::uint64_t size = 1;  ///< number of values, which are known by their index
  bool ordered = false;    ///< whether neighbours are alike; else values are mere names
};

/// A value of each gene.
using Genome = std::vector<std::uint64_t>;

/// What is known of a candidate once it was simulated.
struct Score {
  std::vector<double> objectives;  ///< less is better
  double violation = 0;  ///< how far it is beyond its limits; then objectives count for nothing
};

struct Candidate {
  Genome genome;
  Score score;
};

/// Whether a candidate is better than another: it breaks its limits less, or both keep theirs and
/// it is as good in every objective and better in one (Deb et al. 2002, definition 1).
bool dominates(const Score& a, const Score& b);

/// Indices of the best `count` candidates, best first: by the front that they are on, and on one
/// front those with more room around them (Deb et al. 2002, 3.1 to 3.3). Ties by index.
std::vector<std::size_t> best_of(const std::vector<Candidate>& candidates, std::size_t count);

/// Proposes what to try, by what it was told. The same proposals for the same seed and scores.
class SearchAlgorithm {
 public:
  SearchAlgorithm() = default;
  virtual ~SearchAlgorithm() = default;
  SearchAlgorithm(const SearchAlgorithm&) = delete;
  SearchAlgorithm& operator=(const SearchAlgorithm&) = delete;

  /// The next proposal, without end: whoever asks passes over what there is no point at, and what
  /// was tried.
  virtual Genome propose() = 0;
  virtual void tell(const std::vector<Candidate>& generation) = 0;
};

std::unique_ptr<SearchAlgorithm> make_nsga2(std::vector<Gene> genes, const SearchConfig& config);
std::unique_ptr<SearchAlgorithm> make_random_search(std::vector<Gene> genes,
                                                    const SearchConfig& config);

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
