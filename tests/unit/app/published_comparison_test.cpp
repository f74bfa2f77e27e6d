// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published_comparison.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace orrery::published_comparison_test {
namespace {

PublishedComparison row(const std::string& source, double predicted, double measured) {
  PublishedComparison c;
  c.row.source = source;
  c.predicted = predicted;
  c.measured = measured;
  c.error = predicted / measured - 1;
  return c;
}

// e^0.1 too fast and e^0.1 too slow are as far off.
TEST(PublishedComparison, DeviationsAreThoseOfLogarithms) {
  const PublishedSummary summary =
      summarise({row("a", std::exp(0.1), 1), row("a", 1, std::exp(0.1))});
  EXPECT_NEAR(summary.deviation, 0.1, 1e-12);
}

// Deviations 0.1, 0.2, 0.4: the median is 0.2; without the first 0.3, without the last 0.15.
TEST(PublishedComparison, ASourceDoesNotCountInTheSpreadOfTheOthers) {
  const auto sources = by_source(
      {row("a", std::exp(0.1), 1), row("b", std::exp(-0.2), 1), row("c", std::exp(0.4), 1)});
  const std::optional<SourceSpread> spread = spread_of(sources);
  ASSERT_TRUE(spread);
  EXPECT_NEAR(spread->median, 0.2, 1e-12);
  EXPECT_NEAR(spread->least, 0.15, 1e-12);
  EXPECT_NEAR(spread->greatest, 0.3, 1e-12);
  EXPECT_FALSE(spread_of({sources.front()}));
}

}  // namespace
}  // namespace orrery::published_comparison_test
