// SPDX-License-Identifier: Apache-2.0
// How much of the front of a sweep a search finds with how many of its points. The store has every
// point of the sweep; each search is told its scores from there, as `sweep search` would be.
// Usage: search_bench SWEEP STORE [SEEDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "sim/app/questions/points/front.h"
#include "sim/app/sweeps/search/run_search.h"

namespace orrery {
namespace {

using Columns = std::vector<std::vector<double>>;

/// Demands (mean of the seeds): share of the hypervolume, and share of the points.
constexpr double kLeastVolume = 0.98;
constexpr double kMostPoints = 0.10;

/// Every point of a sweep with its score.
std::map<std::uint64_t, Score> scores_of(const Sweep& sweep, const ResultStore& store) {
  const Scorer score(sweep);
  std::map<std::uint64_t, Score> scores;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next()) {
    if (cursor.kind() != PlaceKind::kPoint || !cursor.can_be()) continue;
    const auto record = store.find(cursor.identity());
    if (!record) {
      std::fprintf(stderr, "place %llu is not in the store; `orrery sweep run` first\n",
                   static_cast<unsigned long long>(cursor.place()));
      std::exit(2);
    }
    scores[cursor.place()] = score(*record, cursor.case_index());
  }
  return scores;
}

void add(Columns& columns, const Score& score) {
  if (score.violation > 0) return;
  columns.resize(score.objectives.size());
  for (std::size_t i = 0; i < columns.size(); ++i) columns[i].push_back(score.objectives[i]);
}

/// Behind the worst of the whole front by a tenth of its range, in each objective.
std::vector<double> reference_of(const Columns& all, const std::vector<std::size_t>& front) {
  std::vector<double> reference;
  for (const auto& column : all) {
    double low = column[front.front()], high = low;
    for (const std::size_t i : front) {
      low = std::min(low, column[i]);
      high = std::max(high, column[i]);
    }
    reference.push_back(high + 0.1 * (high - low));
  }
  return reference;
}

class Bench {
 public:
  Bench(const Sweep& sweep, const ResultStore& store)
      : sweep_(sweep), scores_(scores_of(sweep, store)) {
    Columns all;
    for (const auto& [place, score] : scores_) add(all, score);
    const std::vector<std::size_t> front = pareto_front(all);
    reference_ = reference_of(all, front);
    whole_ = hypervolume(all, reference_);
    std::printf("%s: %zu points, %zu with a result that keeps its limits, %zu on the front\n",
                sweep.config.name.c_str(), scores_.size(), all.front().size(), front.size());
  }

  /// @return whether the mean keeps the demands
  bool run(const char* name, SearchMethod method, int seeds) {
    double volume = 0, points = 0;
    std::printf("%-8s", name);
    for (int seed = 1; seed <= seeds; ++seed) {
      SearchConfig config = sweep_.config.search;
      config.algorithm = method;
      config.seed = seed;
      Search search(sweep_, config);
      while (!search.wanted().empty()) {
        std::vector<Score> scores;
        for (const std::uint64_t place : search.wanted()) scores.push_back(scores_.at(place));
        search.tell(scores);
      }
      Columns found;
      for (const Evaluated& evaluated : search.evaluated()) add(found, evaluated.score);
      const double share = hypervolume(found, reference_) / whole_;
      std::printf(" %6.2f", 100 * share);
      volume += share / seeds;
      points += static_cast<double>(search.evaluated().size()) /
                static_cast<double>(scores_.size()) / seeds;
    }
    std::printf("   mean %6.2f %% of the hypervolume, %5.2f %% of the points\n", 100 * volume,
                100 * points);
    return volume >= kLeastVolume && points <= kMostPoints;
  }

 private:
  const Sweep& sweep_;
  std::map<std::uint64_t, Score> scores_;
  std::vector<double> reference_;
  double whole_ = 0;
};

int run(const char* file, const char* path, int seeds) {
  const Sweep sweep = load_sweep(file);
  const ResultStore store = ResultStore::open_read_only(path);
  Bench bench(sweep, store);
  const bool kept = bench.run("nsga2", SearchMethod::kNsga2, seeds);
  bench.run("random", SearchMethod::kRandom, seeds);
  if (!kept) std::printf("MISSED: 98 %% of the hypervolume with 10 %% of the points\n");
  return kept ? 0 : 1;
}

}  // namespace
}  // namespace orrery

int main(int count, char** words) {
  if (count < 3) {
    std::fprintf(stderr, "usage: search_bench SWEEP STORE [SEEDS]\n");
    return 2;
  }
  return orrery::run(words[1], words[2], count > 3 ? std::atoi(words[3]) : 10);
}
