// SPDX-License-Identifier: Apache-2.0
// What a search asks for, and what it finds on fronts that are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "sim/app/questions/points/front.h"
#include "sim/app/sweeps/search/search.h"
#include "sim/units/hash.h"
#include "tests/unit/app/sweep_file.h"

namespace orrery::search_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<Candidate> random_candidates(std::uint64_t& state, std::size_t count) {
  std::vector<Candidate> candidates(count);
  for (Candidate& candidate : candidates) {
    for (int i = 0; i < 3; ++i)
      candidate.score.objectives.push_back(static_cast<double>(next_random(state) % 8));
    const auto broken = static_cast<double>(next_random(state) % 4);
    candidate.score.violation = broken == 3 ? std::numeric_limits<double>::infinity() : broken;
  }
  return candidates;
}

TEST(BestOf, TakesNoCandidateBeforeOneThatDominatesIt) {
  std::uint64_t state = 3;
  for (int round = 0; round < 200; ++round) {
    const auto candidates = random_candidates(state, 1 + next_random(state) % 40);
    const auto best = best_of(candidates, candidates.size());
    EXPECT_EQ(std::set<std::size_t>(best.begin(), best.end()).size(), candidates.size());
    for (std::size_t later = 0; later < best.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier)
        EXPECT_FALSE(dominates(candidates[best[later]].score, candidates[best[earlier]].score));
  }
}

TEST(BestOf, AnyThatKeepsItsLimitsIsBetterThanOneThatDoesNot) {
  EXPECT_TRUE(dominates({{9, 9}, 0}, {{1, 1}, 0.1}));
  EXPECT_TRUE(dominates({{9, 9}, 0.1}, {{1, 1}, 0.2}));
  EXPECT_FALSE(dominates({{1, 1}, 0.2}, {{9, 9}, 0.2}));
  EXPECT_TRUE(dominates({{1, 2}, 0}, {{1, 3}, 0}));
  EXPECT_FALSE(dominates({{1, 2}, 0}, {{1, 2}, 0}));
  EXPECT_FALSE(dominates({{1, 3}, 0}, {{2, 2}, 0}));
}

TEST(BestOf, OfOneFrontTakesTheEndsAndThenWhereThereIsRoom) {
  // On the line x + y = 10: the neighbours of 4 and 6 are far, those of 9 and 10 near.
  std::vector<Candidate> line;
  for (const double x : {0, 1, 2, 5, 9, 10}) line.push_back({{}, {{x, 10 - x}, 0}});
  EXPECT_THAT(best_of(line, 4), ElementsAre(0, 5, 3, 4));
}

TEST(Hypervolume, IsTheAreaUnderStairs) {
  // (1, 2) and (2, 1) before (3, 3): 2 x 1 + 1 x 2 less the unit square that both have.
  EXPECT_DOUBLE_EQ(hypervolume({{1, 2}, {2, 1}}, {3, 3}), 3);
  EXPECT_DOUBLE_EQ(hypervolume({{1, 2, 2}, {2, 1, 2}}, {3, 3}), 3) << "a dominated point adds none";
  EXPECT_DOUBLE_EQ(hypervolume({{1, 3}, {2, 1}}, {3, 3}), 2) << "nor one beyond the reference";
  EXPECT_DOUBLE_EQ(hypervolume({{}, {}}, {3, 3}), 0);
}

TEST(Hypervolume, IsTheNumberOfUnitCellsThatPointsDominate) {
  std::uint64_t state = 5;
  constexpr int kSide = 6;
  for (int round = 0; round < 60; ++round) {
    const std::size_t objectives = 1 + next_random(state) % 4, count = 1 + next_random(state) % 12;
    std::vector<std::vector<double>> columns(objectives, std::vector<double>(count));
    for (auto& column : columns)
      for (double& value : column) value = static_cast<double>(next_random(state) % kSide);
    int cells = 1, dominated = 0;
    for (std::size_t i = 0; i < objectives; ++i) cells *= kSide;
    for (int cell = 0; cell < cells; ++cell) {
      const auto covers = [&](std::size_t point) {
        int rest = cell;
        for (std::size_t i = 0; i < objectives; ++i, rest /= kSide)
          if (columns[i][point] > rest % kSide) return false;
        return true;
      };
      bool covered = false;
      for (std::size_t point = 0; point < count; ++point) covered = covered || covers(point);
      dominated += covered ? 1 : 0;
    }
    EXPECT_DOUBLE_EQ(hypervolume(columns, std::vector<double>(objectives, kSide)), dominated);
  }
}

/// Runs an algorithm on a function of genomes. @return different genomes that were scored
template <class Function>
std::set<Genome> scored(SearchAlgorithm& algorithm, int generations, const Function& function) {
  std::set<Genome> seen;
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<Candidate> candidates;
    while (candidates.size() < 40) {
      const Genome genome = algorithm.propose();
      if (seen.insert(genome).second) candidates.push_back({genome, function(genome)});
    }
    algorithm.tell(candidates);
  }
  return seen;
}

// The front of (x, (100 - x) + y + z + c) is where y, z and c are 0, whatever x is: 101 of 5.2
// million genomes.
Score far_front(const Genome& genome) {
  const auto x = static_cast<double>(genome[0]);
  const auto rest = static_cast<double>(genome[1] + genome[2] + genome[3]);
  return {{x + rest, 100 - x + rest}, 0};
}
bool on_far_front(const Genome& genome) { return genome[1] + genome[2] + genome[3] == 0; }

TEST(Nsga2, FindsAFrontThatRandomPointsMiss) {
  const std::vector<Gene> genes = {{101, true}, {101, true}, {101, true}, {5, false}};
  SearchConfig config;
  config.population = 40;
  const auto on_front = [&](SearchAlgorithm& algorithm) {
    const auto seen = scored(algorithm, 50, far_front);
    return std::count_if(seen.begin(), seen.end(), on_far_front);
  };
  EXPECT_GE(on_front(*make_nsga2(genes, config)), 90);
  EXPECT_LE(on_front(*make_random_search(genes, config)), 1);
}

TEST(Nsga2, GoesToWhereLimitsAreKept) {
  // 2 % of the plane keep the limit, and objectives pull the other way: the front is a line of 19.
  const std::vector<Gene> genes = {{100, true}, {100, true}};
  const auto limited = [](const Genome& genome) {
    const auto x = static_cast<double>(genome[0]), y = static_cast<double>(genome[1]);
    return Score{{x, y}, std::max(0.0, 180 - x - y)};
  };
  const auto on_front = [&](SearchAlgorithm& algorithm) {
    const auto seen = scored(algorithm, 20, limited);
    return std::count_if(seen.begin(), seen.end(),
                         [](const Genome& g) { return g[0] + g[1] == 180; });
  };
  EXPECT_GE(on_front(*make_nsga2(genes, {})), 8);
  EXPECT_LE(on_front(*make_random_search(genes, {})), 3);
}

const std::string kGemm =
    "{experiment: operator, system: dgx_h100, operator: {kind: gemm, m: 64, n: 64, k: 64}}";

std::string searched(const std::string& rest) {
  return "sweep: s\nobjectives: [{minimize: operator.m}, {maximize: operator.n}]\ncases:\n"
         "  - name: a\n    base: " +
         kGemm + "\n" + rest;
}

/// Scores that depend on the place alone. @return places asked for, a generation an entry
std::vector<std::vector<std::uint64_t>> course_of(const Sweep& sweep, const SearchConfig& config) {
  std::vector<std::vector<std::uint64_t>> course;
  Search search(sweep, config);
  while (!search.wanted().empty()) {
    course.push_back(search.wanted());
    std::vector<Score> scores;
    for (std::uint64_t place : search.wanted()) {
      const double x = next_uniform(place);
      scores.push_back({{x, 1 - x + next_uniform(place)}, 0});
    }
    search.tell(scores);
  }
  return course;
}

SearchConfig small(std::int64_t evaluations, std::int64_t seed = 1) {
  SearchConfig config;
  config.population = 8;
  config.evaluations = evaluations;
  config.seed = seed;
  return config;
}

const char* const kSquare =
    "    axes: {grid: {operator.m: {range: {from: 64, to: 1280, step: 64}}, "
    "operator.n: {range: {from: 64, to: 1280, step: 64}}}}\n";

TEST(Search, AsksForNoPlaceTwiceAndForAsManyAsItMay) {
  const SweepFile file(searched(kSquare));
  const Sweep sweep = load_sweep(file.path());
  std::set<std::uint64_t> asked;
  for (const auto& generation : course_of(sweep, small(100))) {
    EXPECT_LE(generation.size(), 8U);
    for (const std::uint64_t place : generation) EXPECT_TRUE(asked.insert(place).second);
  }
  EXPECT_EQ(asked.size(), 100U);
}

TEST(Search, IsTheSameForTheSameSeedAloneAndGoesOnAsItBegan) {
  const SweepFile file(searched(kSquare));
  const Sweep sweep = load_sweep(file.path());
  const auto course = course_of(sweep, small(64));
  EXPECT_EQ(course_of(sweep, small(64)), course);
  EXPECT_NE(course_of(sweep, small(64, 2)), course);
  auto longer = course_of(sweep, small(128));
  longer.resize(course.size());
  EXPECT_EQ(longer, course);
}

TEST(Search, NeverAsksForWhatARuleExcludesOrCannotBe) {
  const SweepFile file(
      searched(std::string(kSquare) + "    where: [operator.m + operator.n >= 2048]\n"));
  const Sweep sweep = load_sweep(file.path());
  PlanCursor cursor(sweep);
  for (const auto& generation : course_of(sweep, small(60)))
    for (const std::uint64_t place : generation) {
      cursor.seek(place);
      EXPECT_EQ(cursor.kind(), PlaceKind::kPoint);
    }
}

TEST(Search, BeginsWithThePlacesThatItIsGivenWhereTheyArePoints) {
  const SweepFile file(
      searched(std::string(kSquare) + "    where: [operator.m + operator.n >= 2048]\n"));
  const Sweep sweep = load_sweep(file.path());
  const std::uint64_t last = sweep.places() - 1;
  const Search search(sweep, small(20), {last, 0, last - 1, sweep.places(), last});
  EXPECT_EQ(search.wanted().size(), 8U);
  EXPECT_TRUE(std::binary_search(search.wanted().begin(), search.wanted().end(), last));
  EXPECT_TRUE(std::binary_search(search.wanted().begin(), search.wanted().end(), last - 1));
  EXPECT_NE(search.wanted().front(), 0U) << "excluded";
}

TEST(Search, OfASmallSpaceTakesEveryPointOnceAndEnds) {
  const SweepFile file(
      searched("    variants: [{name: x, precision: bf16}, {name: y, precision: fp8}]\n"
               "    axes:\n      grid: {operator.m: [64, 128, 256, 512]}\n"
               "      list: [{operator.k: 128}]\n"
               "    when: [{if: operator.m > 128, grid: {operator.n: [1, 2, 3]}}]\n"));
  const Sweep sweep = load_sweep(file.path());
  std::set<std::uint64_t> points, asked;
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next())
    if (cursor.kind() == PlaceKind::kPoint) points.insert(cursor.place());
  EXPECT_EQ(points.size(), 2U * (2 + 2 * 3 + 1));
  for (const auto& generation : course_of(sweep, small(100)))
    for (const std::uint64_t place : generation) EXPECT_TRUE(asked.insert(place).second);
  EXPECT_EQ(asked, points);
}

TEST(SearchSpace, AGenomeLeadsBackToItsPlace) {
  const SweepFile file(
      searched("    variants: [{name: x, precision: bf16}, {name: y, precision: fp8}]\n"
               "    axes: {grid: {operator.m: [64, 128, 256, 512], operator.k: [64, 32]}}\n"
               "    when: [{if: operator.m > 128, grid: {operator.n: [1, 2, 3]}}]\n"));
  const Sweep sweep = load_sweep(file.path());
  SearchSpace space(sweep);
  for (PlanCursor cursor(sweep); !cursor.at_end(); cursor.next())
    if (cursor.kind() == PlaceKind::kPoint) {
      EXPECT_EQ(space.place_of(space.genome_of(cursor.place())), cursor.place());
    }
  // Part, m, k and n: names of variants have no order, and k has one although it falls.
  ASSERT_EQ(space.genes().size(), 4U);
  EXPECT_FALSE(space.genes()[0].ordered);
  EXPECT_EQ(space.genes()[0].size, 2U);
  EXPECT_TRUE(space.genes()[2].ordered);
}

TEST(Search, EachFurtherFidelityTakesTheBetterHalf) {
  const SweepFile file(searched(std::string(kSquare)) +
                       "search: {population: 8, evaluations: 20, fidelity: [closed, tile]}\n");
  const Sweep sweep = load_sweep(file.path());
  const auto course = course_of(sweep, sweep.config.search);
  std::vector<std::size_t> sizes;
  for (std::size_t i = 0; i < course.size(); ++i) {
    sizes.push_back(course[i].size());
    if (i % 2 == 0) continue;
    EXPECT_TRUE(std::includes(course[i - 1].begin(), course[i - 1].end(), course[i].begin(),
                              course[i].end()));
  }
  EXPECT_THAT(sizes, ElementsAre(16, 8, 16, 8, 8, 4));
}

TEST(Search, PointsOfAFidelityHaveAnIdentityOfTheirOwn) {
  const SweepFile file(searched(std::string(kSquare)) + "search: {fidelity: [closed, auto]}\n");
  const Sweep sweep = load_sweep(file.path());
  const std::vector<Sweep> levels = sweeps_by_fidelity(sweep);
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(PlanCursor(levels[1]).identity(), PlanCursor(sweep).identity())
      << "auto is the default";
  EXPECT_NE(PlanCursor(levels[0]).identity(), PlanCursor(sweep).identity());
}

TEST(Search, SaysWhatItCannotSeek) {
  const auto error_of = [](const std::string& text) {
    const SweepFile file(text);
    const Sweep sweep = load_sweep(file.path());
    try {
      sweeps_by_fidelity(sweep);
      Search(sweep, sweep.config.search);
    } catch (const config::ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(error_of("sweep: s\ncases:\n  - name: a\n    base: " + kGemm + "\n" + kSquare),
              HasSubstr("a search needs objectives"));
  EXPECT_THAT(error_of(searched(kSquare) + "  - name: b\n    base: " + kGemm + "\n" + kSquare +
                       "    objectives: [{minimize: time_s}]\n"),
              HasSubstr("7:5: error: the cases of a search seek the same"));
  EXPECT_THAT(error_of("sweep: s\nobjectives: [{minimize: time_s}]\ncases:\n  - name: a\n    base: "
                       "{experiment: collective, system: dgx_h100, collective: {kind: all_reduce, "
                       "bytes: 1 MB}}\nsearch: {fidelity: [closed, tile]}\n"),
              HasSubstr("6:21: error: unknown key 'fidelity'"));
}

TEST(Limits, AreBrokenByTheSumOfShares) {
  RunRecord record;
  record.metrics = {{"step_time_s", 0.3, "s"}, {"tokens_per_s", 50, "1/s"}};
  ChooseConfig limits;
  EXPECT_EQ(excess_over_limits(limits, record), 0);
  limits.at_most["step_time_s"] = config::Node::scalar("200 ms", {});
  EXPECT_DOUBLE_EQ(excess_over_limits(limits, record), 0.5);
  limits.at_least["tokens_per_s"] = config::Node::scalar("100", {});
  EXPECT_DOUBLE_EQ(excess_over_limits(limits, record), 1.0);
  limits.at_least["peak_memory_bytes"] = config::Node::scalar("1 GB", {});
  EXPECT_TRUE(std::isinf(excess_over_limits(limits, record)));
  record.status = RunStatus::kInfeasible;
  EXPECT_TRUE(std::isinf(excess_over_limits({}, record)));
}

}  // namespace
}  // namespace orrery::search_test
