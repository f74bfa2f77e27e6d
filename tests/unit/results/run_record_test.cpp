// SPDX-License-Identifier: Apache-2.0
#include "sim/results/run_record.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "sim/results/record_bytes.h"
#include "tests/unit/results/example.h"

namespace orrery::run_record_test {
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

TEST(RunRecord, BytesReadBackToTheBit) {
  RunRecord record = example_record();
  record.status = RunStatus::kInfeasible;
  record.reason = "why";
  ByteWriter bytes;
  add(bytes, record);
  ByteReader reader(bytes.bytes());
  RunRecord back = read_record(reader);
  EXPECT_TRUE(reader.at_end());
  EXPECT_EQ(back.base, nullptr);  // both sides have it
  back.base = record.base;
  EXPECT_EQ(to_json(back).dump(), to_json(record).dump());
  EXPECT_EQ(result_digest(back), result_digest(record));
  ByteReader half(std::string_view(bytes.bytes()).substr(0, bytes.bytes().size() / 2));
  EXPECT_THROW(read_record(half), std::out_of_range);
}

TEST(RunRecord, SaysOfItsConfigurationWhatIsVaried) {
  RunRecord record = example_record();
  record.varied = {{{"parallel.tp", "16", 16, "", "sweep.yaml:7:1"}, "16"}};
  EXPECT_EQ(record.configuration().at("parallel").at("tp"), 16);
  EXPECT_EQ(record.configuration().at("bandwidth"), 8e12);
  EXPECT_EQ(record.parameter("parallel.tp"), 16);
  EXPECT_EQ(record.parameter("bandwidth"), 8e12);
  EXPECT_EQ(record.parameter("precision"), std::nullopt);
  EXPECT_EQ(record.parameters().at(0).origin, "sweep.yaml:7:1");
  EXPECT_EQ(record.base->parameters.at(0).text, "8");
}

TEST(Configuration, DifferencesAreTheValuesThatDiffer) {
  const auto base = example_configuration("8"), other = example_configuration("16");
  const auto varied = difference(*base, *other, 4);
  ASSERT_TRUE(varied.has_value());
  ASSERT_EQ(varied->size(), 1U);
  EXPECT_EQ(varied->front().parameter.path, "parallel.tp");
  EXPECT_EQ(varied->front().json, "16");
  EXPECT_EQ(parameters_with(*base, *varied), other->parameters);
  EXPECT_EQ(canonical_with(*base, *varied).dump(), other->canonical->dump());
  EXPECT_FALSE(difference(*base, *other, 0).has_value());
  Configuration more = *other;
  more.parameters.push_back({"depth", "2", 2, "", "a.yaml:9:1"});
  EXPECT_FALSE(difference(*base, more, 4).has_value()) << "another set of keys";
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

TEST(RunRecord, FindsMetricsByName) {
  const RunRecord record = example_record();
  EXPECT_EQ(record.find("events")->value, 123456789);
  EXPECT_EQ(record.find("bound"), nullptr);
}

}  // namespace
}  // namespace orrery::run_record_test
