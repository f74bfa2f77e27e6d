// SPDX-License-Identifier: Apache-2.0
// NSGA-II: Deb, Pratap, Agarwal and Meyarivan, "A fast and elitist multiobjective genetic
// algorithm: NSGA-II", IEEE Trans. Evol. Comput. 6(2), 2002.
#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "sim/app/sweeps/search/algorithm.h"
#include "sim/units/hash.h"

namespace orrery {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Indices = std::vector<std::size_t>;

/// Candidates by front, the best one first (fast nondominated sort).
std::vector<Indices> fronts_of(const std::vector<Candidate>& candidates) {
  const std::size_t count = candidates.size();
  std::vector<Indices> beaten(count);
  Indices beaten_by(count, 0);
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = 0; b < count; ++b)
      if (dominates(candidates[a].score, candidates[b].score)) {
        beaten[a].push_back(b);
        ++beaten_by[b];
      }
  std::vector<Indices> fronts;
  Indices front;
  for (std::size_t i = 0; i < count; ++i)
    if (beaten_by[i] == 0) front.push_back(i);
  while (!front.empty()) {
    Indices next;
    for (const std::size_t member : front)
      for (const std::size_t other : beaten[member])
        if (--beaten_by[other] == 0) next.push_back(other);
    std::ranges::sort(next);
    fronts.push_back(std::exchange(front, std::move(next)));
  }
  return fronts;
}

/// Crowding distance of each member of a front: the sum of distances between its neighbours in
/// each objective, each over its range; infinite at the ends.
std::vector<double> crowding_of(const std::vector<Candidate>& candidates, const Indices& front) {
  std::vector<double> distance(front.size(), 0);
  const std::size_t objectives = candidates[front.front()].score.objectives.size();
  Indices order(front.size());
  for (std::size_t objective = 0; objective < objectives; ++objective) {
    const auto value = [&](std::size_t i) {
      return candidates[front[order[i]]].score.objectives[objective];
    };
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(
        order, {}, [&](std::size_t i) { return candidates[front[i]].score.objectives[objective]; });
    const double range = value(order.size() - 1) - value(0);
    distance[order.front()] = distance[order.back()] = kInfinite;
    for (std::size_t i = 1; range > 0 && i + 1 < order.size(); ++i)
      distance[order[i]] += (value(i + 1) - value(i - 1)) / range;
  }
  return distance;
}

class Nsga2 final : public SearchAlgorithm {
 public:
  Nsga2(std::vector<Gene> genes, const SearchConfig& config)
      : genes_(std::move(genes)),
        population_(static_cast<std::size_t>(config.population)),
        spread_(genes_, config.seed),
        random_(static_cast<std::uint64_t>(config.seed)) {}

  Genome propose() override {
    if (parents_.empty()) return spread_.next();
    Genome child = parent();
    if (chance(kCrossover)) cross(child, parent());
    mutate(child);
    return child;
  }

  void tell(const std::vector<Candidate>& generation) override {
    parents_.insert(parents_.end(), generation.begin(), generation.end());
    std::vector<Candidate> kept;
    for (const std::size_t best : best_of(parents_, population_)) kept.push_back(parents_[best]);
    parents_ = std::move(kept);
  }

 private:
  static constexpr double kCrossover = 0.9;  // as in the paper

  std::uint64_t below(std::uint64_t size) { return next_random(random_) % size; }
  bool chance(double probability) { return next_uniform(random_) < probability; }

  /// The better one of two: parents stand in the order of their rank.
  const Genome& parent() {
    const std::uint64_t a = below(parents_.size()), b = below(parents_.size());
    return parents_[static_cast<std::size_t>(std::min(a, b))].genome;
  }

  /// Each gene comes from one parent or the other; an ordered one may lie between them.
  void cross(Genome& child, const Genome& other) {
    for (std::size_t i = 0; i < child.size(); ++i) {
      const auto [low, high] = std::minmax(child[i], other[i]);
      const std::uint64_t between = low + below(high - low + 1), way = below(4);
      if (way < 2) {
        child[i] = way == 0 ? child[i] : other[i];
      } else if (genes_[i].ordered) {
        child[i] = between;
      } else {
        child[i] = way == 2 ? child[i] : other[i];
      }
    }
  }

  /// One gene in the mean: an ordered one goes some steps, mostly few, another one anywhere.
  void mutate(Genome& child) {
    for (std::size_t i = 0; i < child.size(); ++i) {
      const Gene& gene = genes_[i];
      if (!chance(1.0 / static_cast<double>(child.size())) || gene.size < 2) continue;
      if (!gene.ordered) {
        child[i] = (child[i] + 1 + below(gene.size - 1)) % gene.size;
        continue;
      }
      // Steps up to a size of its own: near ones are likelier, and none is out of reach.
      const std::uint64_t reach = 1 + below(gene.size - 1), step = 1 + below(reach);
      const bool up = below(2) == 0;
      if (up ? child[i] + step < gene.size : child[i] < step) {
        child[i] += std::min(step, gene.size - 1 - child[i]);
      } else {
        child[i] -= std::min(step, child[i]);
      }
    }
  }

  std::vector<Gene> genes_;
  std::size_t population_;
  SpreadGenomes spread_;
  std::uint64_t random_;
  std::vector<Candidate> parents_;  ///< parents of the next generation, best first
};

}  // namespace

bool dominates(const Score& a, const Score& b) {
  if (a.violation > 0 || b.violation > 0) return a.violation < b.violation;
  bool better = false;
  for (std::size_t i = 0; i < a.objectives.size(); ++i) {
    if (a.objectives[i] > b.objectives[i]) return false;
    better = better || a.objectives[i] < b.objectives[i];
  }
  return better;
}

std::vector<std::size_t> best_of(const std::vector<Candidate>& candidates, std::size_t count) {
  Indices best;
  for (const Indices& front : fronts_of(candidates)) {
    const std::vector<double> crowding = crowding_of(candidates, front);
    Indices order(front.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(
        order, [&](std::size_t a, std::size_t b) { return crowding[a] > crowding[b]; });
    for (const std::size_t i : order) {
      if (best.size() == count) return best;
      best.push_back(front[i]);
    }
  }
  return best;
}

std::unique_ptr<SearchAlgorithm> make_nsga2(std::vector<Gene> genes, const SearchConfig& config) {
  return std::make_unique<Nsga2>(std::move(genes), config);
}

}  // namespace orrery
