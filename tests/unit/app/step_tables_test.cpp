// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/step_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include "sim/app/pricing/decode_summary.h"
#include "sim/app/pricing/power_trace.h"

namespace orrery::step_tables_test {
namespace {

StepPrice price_of(double time) {
  StepPrice price;
  for (StepPrice::At& at : price.at) at.time = time;
  return price;
}

double time_of(const PriceTerms& terms) {
  double time = 0;
  for (const PriceTerm& term : terms) time += term.weight * term.price->at[0].time;
  return time;
}

/// A table of a function of rows, with what it was asked.
struct Asked {
  Asked(double (*of)(std::int64_t), RowSteps steps)
      : table(
            [this, of](std::int64_t row) {
              rows.push_back(row);
              return price_of(of(row));
            },
            steps) {}

  double at(std::int64_t row) {
    PriceTerms terms;
    hit = table.add(row, 1, terms);
    return time_of(terms);
  }

  std::vector<std::int64_t> rows;
  RowTable table;
  bool hit = false;
};

TEST(RowTable, TakesTheLineInsideACell) {
  Asked line([](std::int64_t row) { return 100 + 2.0 * static_cast<double>(row); },
             {.exact = 64, .width = 16, .parity = false});
  EXPECT_DOUBLE_EQ(line.at(70), 240);
  EXPECT_THAT(line.rows, ::testing::UnorderedElementsAre(65, 69, 72, 73, 77, 80));
  EXPECT_FALSE(line.hit);
  EXPECT_DOUBLE_EQ(line.at(77), 254);
  EXPECT_TRUE(line.hit);  // never asked before, and not priced
  EXPECT_DOUBLE_EQ(line.at(7), 114);
  EXPECT_FALSE(line.hit);
}

TEST(RowTable, KeepsOddAndEvenNumbersApart) {
  Asked table([](std::int64_t row) { return static_cast<double>(row % 2 == 0 ? row : 2 * row); },
              {.exact = 16, .width = 16});
  EXPECT_DOUBLE_EQ(table.at(70), 70);
  EXPECT_FALSE(table.hit);
  EXPECT_DOUBLE_EQ(table.at(75), 150);
  EXPECT_TRUE(table.hit);  // both were asked at once
}

TEST(RowTable, JumpsBetweenTilesAreSeenToTheRow) {
  const auto jump = [](std::int64_t row) { return row <= 96 ? 100.0 : 200.0; };
  Asked table(jump, {.exact = 16, .width = 16, .parity = true});
  for (std::int64_t row = 60; row <= 130; ++row) EXPECT_DOUBLE_EQ(table.at(row), jump(row)) << row;
}

TEST(RowTable, CellsAreAsWideAsTilesAre) {
  // Tiles of 128 rows take the same time however many of them are used.
  const auto tiles = [](std::int64_t row) { return static_cast<double>((row + 127) / 128); };
  Asked table(tiles, {.exact = 16, .width = 16, .widest = 256, .parity = false});
  for (std::int64_t row = 2049; row <= 4096; ++row) EXPECT_DOUBLE_EQ(table.at(row), tiles(row));
  EXPECT_LE(table.rows.size(), 2048 / 256 * 12U);
}

TEST(ColumnTable, IsExactForWhatIsStraightInEachFigure) {
  ColumnTable table({TableAxis({0, 10, 20}), TableAxis({0, 1})},
                    {.exact = 4, .width = 4, .parity = false},
                    [](std::int64_t rows, const ColumnTable::Point& at) {
                      return price_of(static_cast<double>(rows) * (1 + at[0]) * (2 - at[1]));
                    });
  PriceTerms terms;
  EXPECT_FALSE(table.add(7, {13, 0.25}, 1, terms));
  EXPECT_NEAR(time_of(terms), 7 * 14 * 1.75, 1e-9);
  terms.clear();
  EXPECT_TRUE(table.add(8, {19, 0.5}, 2, terms));
  EXPECT_NEAR(time_of(terms), 2 * 8 * 20 * 1.5, 1e-9);
}

TEST(ColumnTable, FillsTheCellsThatAPointMovesTo) {
  ColumnTable table({TableAxis({0, 10, 20, 30}), TableAxis({0, 1, 2, 3})}, {.exact = 4},
                    [](std::int64_t rows, const ColumnTable::Point&) {
                      return price_of(static_cast<double>(rows));
                    });
  PriceTerms terms;
  EXPECT_FALSE(table.add(2, {5, 1.5}, 1, terms));
  for (const ColumnTable::Point& near : {ColumnTable::Point{15, 1.5}, {5, 0.5}, {5, 2.5}})
    EXPECT_TRUE(table.add(2, near, 1, terms));
  EXPECT_FALSE(table.add(2, {25, 1.5}, 1, terms));
}

TEST(ClockGrid, TimesThatGoWithTheReciprocalClockAreExact) {
  for (const double share : {1.0, 0.99, 0.8, 0.51, 0.4}) {
    const ClockGrid::Place place = ClockGrid::place(share);
    const double time = (1 - place.weight) / ClockGrid::share(place.first) +
                        place.weight / ClockGrid::share(place.second);
    EXPECT_NEAR(time, 1 / share, 1e-12) << share;
  }
}

TEST(EvenWindowEnergy, IsThatOfATraceOfEvenPower) {
  // Steps of 3 to 50 ms in a window of 20 ms, as kernels of 0.1 ms that take 1 J each.
  for (const std::uint32_t kernels : {30U, 133U, 200U, 347U, 500U}) {
    PowerTrace trace({Joules(1)}, {}, 1, Seconds(0.02));
    const Picoseconds length = 100'000'000;
    for (std::uint32_t i = 0; i < kernels; ++i)
      trace.kernel_ran(0, 0, i * length, (i + 1) * length);
    const double period = static_cast<double>(kernels) * static_cast<double>(length);
    const double energy = even_window_energy(kernels, period, period, 2e10);
    EXPECT_NEAR(energy / 0.02, trace.highest(kernels * length).base(), 1e-6 * energy / 0.02)
        << kernels;
  }
}

TEST(SummarisedDecodes, HaveTheirNumberTheirLongestAndTheirTokens) {
  struct Case {
    std::int64_t sequences, longest, context;
  };
  for (const Case& c : {Case{1, 77, 77}, Case{2, 500, 700}, Case{5, 100, 500}, Case{8, 4000, 9000},
                        Case{100, 3000, 90000}, Case{256, 8000, 200000}, Case{3, 90, 90}}) {
    std::int64_t sequences = 0, longest = 0, context = 0;
    for (const DecodeGroup& group : summarised_decodes(c.sequences, c.longest, c.context)) {
      sequences += group.count;
      longest = std::max(longest, group.context);
      context += group.count * group.context;
    }
    EXPECT_EQ(sequences, c.sequences);
    EXPECT_EQ(longest, c.longest);
    EXPECT_NEAR(static_cast<double>(context), static_cast<double>(c.context),
                0.5 * static_cast<double>(c.sequences));
  }
}

}  // namespace
}  // namespace orrery::step_tables_test
