// SPDX-License-Identifier: Apache-2.0
#include "device/selection.cuh"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "host/reference.h"

// The kernel's own code, compiled for the host.
namespace orrery::measure::selection_test {
namespace {

constexpr int kThreads = 64;

/// Chosen scores in falling order; each place is chosen once.
std::vector<float> chosen_of(const std::vector<float>& scores, int rows, int row, int wanted) {
  const int count = static_cast<int>(scores.size()) / rows;
  std::vector<std::int32_t> places(static_cast<std::size_t>((rows + 1) * wanted), -1);
  EmulatedLanes lanes(kThreads);
  lanes.run(static_cast<unsigned>(row), [&] {
    selection_kernel<kThreads>(SelectionOperands{scores.data(), places.data(), count, wanted});
  });
  std::set<std::int32_t> different;
  std::vector<float> result;
  for (int i = 0; i < wanted; ++i) {
    const std::int32_t place = places[static_cast<std::size_t>(row * wanted + i)];
    different.insert(place);
    result.push_back(place < 0 || place >= count
                         ? std::numeric_limits<float>::quiet_NaN()
                         : scores[static_cast<std::size_t>(row * count + place)]);
  }
  EXPECT_EQ(different.size(), static_cast<std::size_t>(wanted));
  // Nothing beside the row's own results is written.
  EXPECT_EQ(std::count(places.begin(), places.end(), -1), std::int64_t{rows} * wanted);
  std::sort(result.begin(), result.end(), std::greater<>());
  return result;
}

std::vector<float> random_scores(int count) {
  const RandomBuffer from{Format::kF32, Data::kRandom, 31};
  std::vector<float> scores;
  for (int i = 0; i < count; ++i) scores.push_back(static_cast<float>(from.at(i)));
  return scores;
}

TEST(Selection, ChoosesTheLargestOfRandomScores) {
  const std::vector<float> scores = random_scores(8192);
  EXPECT_EQ(chosen_of(scores, 1, 0, 2048), largest(scores, 2048));
}

TEST(Selection, ARowIsChosenFromItself) {
  const std::vector<float> scores = random_scores(3 * 1024);
  EXPECT_EQ(chosen_of(scores, 3, 2, 300), largest({scores.begin() + 2048, scores.end()}, 300));
}

TEST(Selection, OfAsManyAsThereAreTakesAll) {
  const std::vector<float> scores = random_scores(512);
  EXPECT_EQ(chosen_of(scores, 1, 0, 512), largest(scores, 512));
}

TEST(Selection, OfEqualScoresTakesAsManyAsAreWanted) {
  std::vector<float> scores(1024, 1.0f);
  for (std::size_t i = 0; i < 100; ++i) scores[7 * i] = 2.0f + static_cast<float>(i);
  EXPECT_EQ(chosen_of(scores, 1, 0, 200), largest(scores, 200));
}

TEST(Selection, ScoresThatDifferInTheLastBitsAreReadAgainWhereTooManyWait) {
  // All share the first digit, more than shared memory holds.
  std::vector<float> scores = random_scores(kWaiting + 1024);
  for (float& score : scores) score = 1 + score * 1e-4f;
  EXPECT_EQ(chosen_of(scores, 1, 0, 700), largest(scores, 700));
}

TEST(Selection, NegativeScoresAreOrderedToo) {
  std::vector<float> scores = random_scores(1024);
  for (float& score : scores) score -= 10;
  scores[5] = -0.0f;
  EXPECT_EQ(chosen_of(scores, 1, 0, 17), largest(scores, 17));
}

}  // namespace
}  // namespace orrery::measure::selection_test
