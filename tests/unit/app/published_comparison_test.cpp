// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/published_comparison.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/config/diagnostics.h"

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

/// The comparisons of a list of rows of one product, 4096 x 4096 x 4096 on an H100 before `set`.
std::vector<PublishedComparison> compare_rows(const std::vector<std::string>& rows) {
  const std::filesystem::path file = std::filesystem::temp_directory_path() /
                                     ("orrery_published_" + std::to_string(::getpid()) + ".yaml");
  std::ofstream out(file);
  for (const std::string& row : rows)
    out << "- experiment:\n"
           "    experiment: operator\n"
           "    system: dgx_h100\n"
           "    operator: {kind: gemm, m: 4096, n: 4096, k: 4096}\n"
           "    precision: bf16\n"
           "  metric: time_s\n"
           "  source: a test\n"
           "  measured: 2\n"
        << row;
  out.close();
  std::vector<PublishedComparison> comparisons = compare_published({file.string()}, nullptr, 1);
  std::filesystem::remove(file);
  return comparisons;
}

TEST(PublishedComparison, MistakesInWhatIsLaidOverAreShownWithTheirLine) {
  for (const std::string key : {"set", "over"}) {
    try {
      compare_rows({"  id: ROW\n  " + key + ": {sytem: dgx_a100}\n"});
      FAIL() << key;
    } catch (const config::ConfigError& error) {
      const std::string said = error.what();
      EXPECT_NE(said.find("did you mean 'system'?"), std::string::npos) << said;
      EXPECT_NE(said.find(key + ": {sytem: dgx_a100}\n"), std::string::npos) << said;
    }
  }
}

// Two absolute rows and the ratio of them: what is divided is the row's experiment after its set.
TEST(PublishedComparison, ARatioIsTheMetricOfTheRowOverThatOfTheOtherExperiment) {
  const auto rows = compare_rows({"  id: LARGE\n  set: {operator.m: 8192}\n",
                                  "  id: OTHER\n  set: {operator.m: 8192, system: dgx_a100}\n",
                                  "  id: RATIO\n  set: {operator.m: 8192}\n"
                                  "  over: {system: dgx_a100}\n"});
  ASSERT_EQ(rows.size(), 3U);
  for (const PublishedComparison& row : rows) ASSERT_EQ(row.reason, "") << row.row.id;
  EXPECT_DOUBLE_EQ(rows[2].predicted, rows[0].predicted / rows[1].predicted);
  EXPECT_DOUBLE_EQ(rows[2].error, rows[2].predicted / 2 - 1);
  EXPECT_EQ(rows[0].row.compared_unit(), "s");
  EXPECT_EQ(rows[2].row.compared_unit(), "1");
}

// Parameters that both runs share divide out, others do not: an interval would be a guess.
TEST(PublishedComparison, ARatioHasNoInterval) {
  const auto rows = compare_rows({"  id: ALONE\n", "  id: RATIO\n  over: {operator.m: 8192}\n"});
  EXPECT_TRUE(rows[0].interval);
  EXPECT_FALSE(rows[1].interval);
}

}  // namespace
}  // namespace orrery::published_comparison_test
