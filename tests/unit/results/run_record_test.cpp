// SPDX-License-Identifier: Apache-2.0
#include "sim/results/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/unit/results/example.h"

namespace orrery {
namespace {

using nlohmann::ordered_json;

TEST(RunRecord, JsonHasTheKeysOfTheInterfaceInOrder) {
  const ordered_json json = to_json(example_record());
  std::vector<std::string> keys;
  for (const auto& item : json.items()) keys.push_back(item.key());
  EXPECT_EQ(keys, (std::vector<std::string>{"schema", "experiment", "name", "identity", "status",
                                            "reason", "metrics", "units", "intervals", "breakdown",
                                            "classes", "components", "link_classes", "links",
                                            "provenance", "configuration", "parameters"}));
}

TEST(RunRecord, LabelsAreMetricsWithText) {
  const ordered_json json = to_json(example_record());
  EXPECT_EQ(json["metrics"]["bound"], "memory");
  EXPECT_EQ(json["metrics"]["step_time_s"], 0.1);
  EXPECT_FALSE(json["units"].contains("bound"));
}

TEST(RunRecord, IntervalsAreNullWhereNothingWasFitted) {
  const ordered_json json = to_json(example_record());
  EXPECT_EQ(json["intervals"]["step_time_s"], (ordered_json{0.1 * 0.9, 0.1 * 1.1}));
  EXPECT_TRUE(json["intervals"]["events"].is_null());
}

TEST(RunRecord, BreakdownRepeatsItsMetricsUnderShortNames) {
  RunRecord record = example_record();
  record.metrics.push_back({"breakdown.compute_share", 0.5, ""});  // no time, so no part of it
  const ordered_json json = to_json(record);
  EXPECT_EQ(json["breakdown"], (ordered_json{{"compute_s", 1.0 / 3}}));
  EXPECT_EQ(json["metrics"]["breakdown.compute_s"], 1.0 / 3);
}

TEST(RunRecord, PrintedJsonReadsBackToTheBit) {
  const RunRecord record = example_record();
  const std::string printed = to_json(record).dump();
  const RunRecord back = run_record_from_json(ordered_json::parse(printed));
  EXPECT_EQ(to_json(back).dump(), printed);
  ASSERT_EQ(back.metrics.size(), record.metrics.size());
  for (std::size_t i = 0; i < record.metrics.size(); ++i) {
    EXPECT_EQ(back.metrics[i].name, record.metrics[i].name);
    EXPECT_EQ(back.metrics[i].value, record.metrics[i].value);
    EXPECT_EQ(back.metrics[i].unit, record.metrics[i].unit);
    EXPECT_EQ(back.metrics[i].interval, record.metrics[i].interval);
  }
  EXPECT_EQ(back.labels.at(0).value, "memory");
  EXPECT_EQ(back.classes.at(0).count, 12u);
  EXPECT_EQ(back.parameters.at(0).value, 8.0);
  EXPECT_FALSE(back.parameters.at(1).value.has_value());
}

TEST(RunRecord, NumbersTakeTheShortestFormThatReadsBack) {
  RunRecord record = example_record();
  record.metrics = {{"a", 0.1, ""}, {"b", 0.1 + 0.2, ""}, {"c", 8e12, ""}};
  EXPECT_EQ(to_json(record)["metrics"].dump(),
            R"({"a":0.1,"b":0.30000000000000004,"c":8000000000000.0,"bound":"memory"})");
}

TEST(RunRecord, NumbersThatAreNotFiniteAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  RunRecord value = example_record();
  value.metrics[1].value = nan;
  EXPECT_THROW(to_json(value), std::logic_error);
  RunRecord interval = example_record();
  interval.metrics[0].interval->second = infinity;
  EXPECT_THROW(to_json(interval), std::logic_error);
  RunRecord in_class = example_record();
  in_class.classes[0].flops = -infinity;
  EXPECT_THROW(to_json(in_class), std::logic_error);
  RunRecord deep = example_record();
  deep.provenance["by_class"]["gemm"] = {0.5, nan};
  EXPECT_THROW(to_json(deep), std::logic_error);
}

TEST(RunRecord, TwoMetricsOfOneNameAreRefused) {
  RunRecord record = example_record();
  record.labels.push_back({"step_time_s", "long"});
  EXPECT_THROW(to_json(record), std::logic_error);
}

TEST(RunRecord, OtherJsonIsRefusedWithTheReason) {
  EXPECT_THROW(run_record_from_json(ordered_json::array()), std::invalid_argument);
  EXPECT_THROW(run_record_from_json({{"schema", "orrery.run/1"}}), std::invalid_argument);
  ordered_json newer = to_json(example_record());
  newer["schema"] = "orrery.run/2";
  EXPECT_THROW(run_record_from_json(newer), std::invalid_argument);
  ordered_json status = to_json(example_record());
  status["status"] = "fine";
  EXPECT_THROW(run_record_from_json(status), std::invalid_argument);
  ordered_json metric = to_json(example_record());
  metric["metrics"]["step_time_s"] = ordered_json::array();
  EXPECT_THROW(run_record_from_json(metric), std::invalid_argument);
}

TEST(RunRecord, FindsMetricsByName) {
  const RunRecord record = example_record();
  EXPECT_EQ(record.find("events")->value, 123456789);
  EXPECT_EQ(record.find("bound"), nullptr);
}

}  // namespace
}  // namespace orrery
