// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/residual_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/units/hash.h"

namespace orrery::residual_table_test {
namespace {

ResidualPoint point(double x, double y, int part = 0) { return {part, {x, y}}; }

/// A smooth surface over a plane.
double surface(double x, double y) { return 0.3 * std::sin(x) + 0.1 * std::cos(2 * y); }

/// Points at random places of a square of 6 by 6, and a few of another part.
std::vector<MeasuredResidual> measured() {
  std::vector<MeasuredResidual> points;
  std::uint64_t state = 1;
  for (int i = 0; i < 600; ++i) {
    const double x = 6 * next_uniform(state), y = 6 * next_uniform(state);
    points.push_back({point(x, y), surface(x, y)});
  }
  for (int i = 0; i < 5; ++i) points.push_back({point(i, 0, 7), -0.5});
  return points;
}

TEST(ResidualTable, SaysOfItsOwnPointsWhatWasMeasured) {
  // What the nugget takes: neighbours are alike, so little.
  const ResidualTable table(measured());
  for (const MeasuredResidual& p : measured())
    EXPECT_NEAR(table.log_ratio(p.point), p.log_ratio, p.point.part == 0 ? 0.03 : 0.1);
}

TEST(ResidualTable, BetweenItsPointsFollowsWhatTheyShow) {
  const ResidualTable table(measured());
  double worst = 0;
  for (double x = 0.5; x < 5.6; x += 0.25)
    for (double y = 0.5; y < 5.6; y += 0.25)
      worst = std::max(worst, std::abs(table.log_ratio(point(x, y)) - surface(x, y)));
  EXPECT_LT(worst, 0.05);
}

TEST(ResidualTable, OnePointAloneFadesWithTheDistance) {
  // Kriging by hand: weight exp(-d) / (1 + nugget), nugget 0.05.
  const ResidualTable table({{point(0, 0), 0.2}});
  for (const double distance : {0.0, 0.5, 1.0, 3.0}) {
    const ResidualEstimate estimate = table.estimate(point(distance, 0));
    EXPECT_NEAR(estimate.log_ratio, 0.2 * std::exp(-distance) / 1.05, 1e-12);
    EXPECT_NEAR(estimate.variance, 1 - std::exp(-2 * distance) / 1.05, 1e-12);
  }
}

TEST(ResidualTable, FarFromAllPointsTheRatioIsOneAndNothingIsKnown) {
  const ResidualEstimate estimate = ResidualTable(measured()).estimate(point(30, -20));
  EXPECT_NEAR(estimate.log_ratio, 0, 1e-6);
  EXPECT_NEAR(estimate.variance, 1, 1e-6);
  EXPECT_EQ(ResidualTable().log_ratio(point(0, 0)), 0);
  EXPECT_EQ(ResidualTable().estimate(point(0, 0)).variance, 1);
}

TEST(ResidualTable, PartsTellNothingAboutEachOther) {
  const ResidualTable table(measured());
  EXPECT_NEAR(table.log_ratio(point(2, 0, 7)), -0.5, 0.1);
  EXPECT_EQ(table.log_ratio(point(2, 0, 3)), 0);
}

TEST(ResidualTable, TheOrderOfThePointsDoesNotMatter) {
  std::vector<MeasuredResidual> points = measured();
  // Two measurements of one kernel, and a column of equal distances.
  points.push_back({points[0].point, points[0].log_ratio + 0.1});
  for (int i = 0; i < 40; ++i) points.push_back({point(3, 10 + i), 0.01 * i});
  const ResidualTable table(points);
  std::uint64_t state = 5;
  for (std::size_t i = points.size() - 1; i > 0; --i)
    std::swap(points[i], points[next_random(state) % (i + 1)]);
  const ResidualTable shuffled(points);
  for (double x = -1; x < 7; x += 0.5) {
    for (const double y : {0.0, 3.0, 10.5, 25.0, 60.0}) {
      EXPECT_EQ(table.log_ratio(point(x, y)), shuffled.log_ratio(point(x, y)));
      EXPECT_EQ(table.estimate(point(x, y)).variance, shuffled.estimate(point(x, y)).variance);
    }
  }
}

TEST(ResidualTable, TheSearchFindsTheNearestPoints) {
  // With a single point moved, only estimates that have it among their nearest may change.
  std::vector<MeasuredResidual> points = measured();
  const ResidualTable before(points);
  points[10].log_ratio += 1;
  const ResidualTable after(points);
  const ResidualPoint& moved = points[10].point;
  for (double x = 0; x <= 6; x += 0.3) {
    for (double y = 0; y <= 6; y += 0.3) {
      const double distance = std::hypot(x - moved.at[0], y - moved.at[1]);
      const auto nearer = std::count_if(points.begin(), points.end(), [&](const auto& p) {
        return p.point.part == 0 && std::hypot(x - p.point.at[0], y - p.point.at[1]) < distance;
      });
      const bool changed = before.log_ratio(point(x, y)) != after.log_ratio(point(x, y));
      EXPECT_EQ(changed, nearer < 24) << x << " " << y;
    }
  }
}

}  // namespace
}  // namespace orrery::residual_table_test
