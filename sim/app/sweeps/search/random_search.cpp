// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include "sim/app/sweeps/search/algorithm.h"

namespace orrery {
namespace {

class RandomSearch final : public SearchAlgorithm {
 public:
  RandomSearch(std::vector<Gene> genes, std::int64_t seed) : spread_(std::move(genes), seed) {}

  Genome propose() override { return spread_.next(); }
  void tell(const std::vector<Candidate>&) override {}

 private:
  SpreadGenomes spread_;
};

}  // namespace

SpreadGenomes::SpreadGenomes(std::vector<Gene> genes, std::int64_t seed)
    : genes_(std::move(genes)),
      points_({0, Sampler::kSobol, seed}, std::max<std::size_t>(1, genes_.size())) {}

Genome SpreadGenomes::next() {
  Genome genome;
  for (std::size_t i = 0; i < genes_.size(); ++i) {
    const double at = points_.at(next_, i) * static_cast<double>(genes_[i].size);
    genome.push_back(std::min(static_cast<std::uint64_t>(at), genes_[i].size - 1));
  }
  ++next_;
  return genome;
}

std::unique_ptr<SearchAlgorithm> make_random_search(std::vector<Gene> genes,
                                                    const SearchConfig& config) {
  return std::make_unique<RandomSearch>(std::move(genes), config.seed);
}

}  // namespace orrery
