// SPDX-License-Identifier: Apache-2.0
#include "host/reference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "host/measurement.h"

namespace orrery::measure::reference_test {
namespace {

const RandomBuffer kQuery{Format::kBf16, Data::kRandom, 1};
const RandomBuffer kKey{Format::kBf16, Data::kRandom, 2};
const RandomBuffer kValue{Format::kBf16, Data::kRandom, 3};

AttentionRow row_of(std::int64_t length) {
  AttentionRow row;
  row.query = kQuery;
  row.key = kKey;
  row.value = kValue;
  row.kv_stride = 8;
  row.length = length;
  row.head_dim = 4;
  return row;
}

TEST(Dot, SumsProductsFromTheGivenStarts) {
  const double expected = kQuery.at(5) * kKey.at(7) + kQuery.at(6) * kKey.at(8);
  EXPECT_DOUBLE_EQ(dot(kQuery, 5, kKey, 7, 2), expected);
}

TEST(Attention, OfOneKeyIsItsValue) {
  AttentionRow row = row_of(1);
  row.kv_start = 16;
  const std::vector<double> out = attention(row);
  ASSERT_EQ(out.size(), 4u);
  for (int d = 0; d < 4; ++d) EXPECT_DOUBLE_EQ(out[static_cast<std::size_t>(d)], kValue.at(16 + d));
}

TEST(Attention, OfAZeroQueryIsTheMeanOfTheValues) {
  AttentionRow row = row_of(3);
  row.query.data = Data::kZeros;
  const double mean = (kValue.at(0) + kValue.at(8) + kValue.at(16)) / 3;
  EXPECT_NEAR(attention(row)[0], mean, 1e-15);
}

TEST(Attention, OfTwoKeysWeighsThemByTheirScores) {
  AttentionRow row = row_of(2);
  row.scale = 0.5;
  const double s0 = 0.5 * dot(kQuery, 0, kKey, 0, 4), s1 = 0.5 * dot(kQuery, 0, kKey, 8, 4);
  const double w = 1 / (1 + std::exp(s1 - s0));
  EXPECT_NEAR(attention(row)[2], w * kValue.at(2) + (1 - w) * kValue.at(10), 1e-14);
}

TEST(Attention, PagesInOrderAreTheContiguousCache) {
  AttentionRow row = row_of(5);
  const std::vector<double> contiguous = attention(row);
  const std::vector<std::int32_t> pages = {0, 1, 2};
  row.pages = pages.data();
  row.page_size = 2;
  row.page_stride = 2 * row.kv_stride;
  EXPECT_EQ(attention(row), contiguous);
}

TEST(Attention, ReadsAKeyInThePageOfTheTable) {
  AttentionRow row = row_of(1);
  const std::vector<std::int32_t> pages = {3};
  row.pages = pages.data();
  row.page_size = 2;
  row.page_stride = 16;
  EXPECT_DOUBLE_EQ(attention(row)[1], kValue.at(3 * 16 + 1));
}

TEST(RowReferences, AgreeWithHandComputedValues) {
  const std::vector<double> weights = softmax({0.0, std::log(3.0)});
  EXPECT_NEAR(weights[0], 0.25, 1e-15);
  EXPECT_NEAR(weights[1], 0.75, 1e-15);
  // mean of squares of (3, 4) is 12.5.
  EXPECT_NEAR(rms_norm({3, 4}, {1, 2}, 0)[1], 2 * 4 / std::sqrt(12.5), 1e-15);
  EXPECT_DOUBLE_EQ(swiglu(0, 5), 0);
  EXPECT_NEAR(swiglu(1, 2), 2 / (1 + std::exp(-1.0)), 1e-15);
  EXPECT_DOUBLE_EQ(rotary_angle(7, 0, 128, 10000), 7);
  EXPECT_NEAR(rotary_angle(7, 32, 128, 10000), 7 / std::sqrt(std::sqrt(1e8)), 1e-15);
}

TEST(Comparison, PassesWhatIsWithinTheTolerance) {
  Comparison comparison;
  comparison.add(1.001, 1);
  comparison.add(-2, -2);
  EXPECT_NEAR(comparison.relative_error(), 0.001 / std::sqrt(5.0), 1e-12);
  EXPECT_NO_THROW(comparison.require(1e-3, "x"));
  EXPECT_THROW(comparison.require(1e-4, "x"), WrongResult);
}

TEST(Comparison, OneWrongEntryOfManyFails) {
  Comparison comparison;
  for (int i = 0; i < 10000; ++i) comparison.add(1, 1);
  comparison.add(0.8, 1);
  // As a whole 0.2 / 100 = 0.002, below the tolerance; the entry is off by 0.2 > 8 * 0.01.
  EXPECT_LT(comparison.relative_error(), 0.01);
  EXPECT_THROW(comparison.require(0.01, "x"), WrongResult);
}

TEST(Comparison, NotANumberFails) {
  Comparison comparison;
  comparison.add(std::numeric_limits<double>::quiet_NaN(), 1);
  comparison.add(1, 1);
  EXPECT_THROW(comparison.require(1, "x"), WrongResult);
}

TEST(Comparison, NothingComparedFails) { EXPECT_THROW(Comparison().require(1, "x"), WrongResult); }

TEST(Comparison, ZerosMustBeZero) {
  Comparison right;
  right.add(0, 0);
  EXPECT_NO_THROW(right.require(0.01, "x"));
  Comparison wrong;
  wrong.add(1e-9, 0);
  EXPECT_THROW(wrong.require(0.01, "x"), WrongResult);
}

TEST(Failures, AreCountedAndTheFirstOnesNamed) {
  Failures none;
  EXPECT_NO_THROW(none.raise());
  Failures some;
  for (int i = 1; i <= 7; ++i) some.add(WrongResult("shape " + std::to_string(i)));
  try {
    some.raise();
    FAIL();
  } catch (const WrongResult& error) {
    EXPECT_STREQ(error.what(), "7 wrong: shape 1; shape 2; shape 3; shape 4; shape 5");
  }
}

TEST(SamplePlaces, HaveTheCornersAndStayInside) {
  const std::vector<Place> places = sample_places(5, 9, 40, 11);
  ASSERT_EQ(places.size(), 40u);
  std::set<std::pair<std::int64_t, std::int64_t>> different;
  for (const Place& place : places) {
    EXPECT_TRUE(place.row >= 0 && place.row < 5 && place.column >= 0 && place.column < 9);
    different.emplace(place.row, place.column);
  }
  for (const std::int64_t row : {0, 4}) {
    for (const std::int64_t column : {0, 8}) EXPECT_TRUE(different.count({row, column}));
  }
  EXPECT_GT(different.size(), 15u);
}

}  // namespace
}  // namespace orrery::measure::reference_test
