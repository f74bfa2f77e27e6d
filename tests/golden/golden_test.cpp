// SPDX-License-Identifier: Apache-2.0
// Every metric of every experiment beside this file, to the last digit. A change of any prediction
// shows here: run the test with ORRERY_UPDATE_GOLDEN=1, read the difference, and say in the commit
// why it is right.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"

namespace orrery::golden_test {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> experiments() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(ORRERY_SOURCE_DIR "/tests/golden")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string metrics_csv(const fs::path& experiment) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  const RunRecord record = simulate(load_experiment(experiment.string(), {}, library));
  std::string csv = "metric,value,unit\n";
  for (const Label& label : record.labels) csv += label.name + "," + label.value + ",\n";
  for (const Metric& metric : record.metrics) {
    std::array<char, 40> value{};
    std::snprintf(value.data(), value.size(), "%.17g", metric.value);
    csv += metric.name + "," + value.data() + "," + metric.unit + "\n";
  }
  return csv;
}

class Golden : public testing::TestWithParam<fs::path> {};

TEST_P(Golden, PredictionsDoNotMoveUnnoticed) {
  const std::string actual = metrics_csv(GetParam());
  const fs::path file = fs::path(GetParam()).replace_extension(".csv");
  if (std::getenv("ORRERY_UPDATE_GOLDEN") != nullptr) std::ofstream(file) << actual;
  std::ifstream stream(file);
  const std::string expected{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_EQ(actual, expected);
}

INSTANTIATE_TEST_SUITE_P(Experiments, Golden, testing::ValuesIn(experiments()),
                         [](const auto& param) { return param.param.stem().string(); });

}  // namespace
}  // namespace orrery::golden_test
