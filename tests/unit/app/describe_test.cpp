// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "models/kernels/device/family.h"
#include "sim/app/cli/answer_text.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/config/load.h"
#include "sim/machine/calibration.h"
#include "sim/machine/system_config.h"
#include "sim/results/metric_table.h"
#include "tests/printed_name.h"

namespace orrery::describe_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const config::Library& library() {
  static const config::Library shipped(std::string(ORRERY_SOURCE_DIR) + "/configs");
  return shipped;
}

std::string printed(const Answer& answer) {
  std::ostringstream out;
  print(answer, out);
  return out.str();
}

std::string text(const std::vector<std::string>& words) {
  return printed(describe(words, library()));
}

std::string usage_error(const std::vector<std::string>& words) {
  try {
    describe(words, library());
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

// The cells of the first row with this label: what stands between two or more spaces.
std::vector<std::string> row(const std::string& table, const std::string& label) {
  std::istringstream lines(table);
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind(label + "  ", 0) != 0) continue;
    const std::string rest = line.substr(line.find_first_not_of(' ', label.size()));
    const std::regex gap(" {2,}");
    return {std::sregex_token_iterator(rest.begin(), rest.end(), gap, -1), {}};
  }
  return {"no row '" + label + "'"};
}

struct Published {
  std::string label, gb200, cm384, ratio;
};

void PrintTo(const Published& cell, std::ostream* out) { *out << cell.label; }

class PublishedTable : public testing::TestWithParam<Published> {};

// Huawei CloudMatrix384 against NVIDIA GB200 NVL72 as printed in the Fudan Machine Learning Systems
// lecture deck (Li Shang), after SemiAnalysis, Huawei AI CloudMatrix 384 (2025-04-16).
TEST_P(PublishedTable, IsReproducedToThePrintedDigits) {
  const auto cells = row(text({"system", "gb200_nvl72", "cm384"}), GetParam().label);
  ASSERT_GE(cells.size(), 3U) << cells[0];
  EXPECT_EQ(cells[0], GetParam().gb200);
  EXPECT_EQ(cells[1], GetParam().cm384);
  EXPECT_EQ(cells[2], GetParam().ratio);
}

INSTANTIATE_TEST_SUITE_P(
    Cells, PublishedTable,
    testing::Values(
        Published{"BF16 dense", "180 PFLOPS", "300 PFLOPS", "1.7x"},
        Published{"HBM capacity", "13.8 TB", "49.2 TB", "3.6x"},
        Published{"HBM bandwidth", "576 TB/s", "1,229 TB/s", "2.1x"},
        Published{"scale-up bandwidth, one way", "518,400 Gb/s", "1,075,200 Gb/s", "2.1x"},
        Published{"scale-up domain", "72", "384", "5.3x"},
        Published{"scale-out bandwidth, one way", "28,800 Gb/s", "153,600 Gb/s", "5.3x"},
        Published{"all-in power", "145,000 W", "599,821 W", "4.1x"},
        Published{"all-in power per BF16 dense", "0.81 W/TFLOP", "2.00 W/TFLOP", "2.5x"},
        Published{"all-in power per HBM bandwidth", "251.7 W per TB/s", "488.1 W per TB/s", "1.9x"},
        Published{"all-in power per HBM capacity", "10.5 kW/TB", "12.2 kW/TB", "1.2x"},
        Published{"BF16 dense, per chip", "2,500 TFLOPS", "780 TFLOPS", "0.3x"},
        Published{"HBM capacity, per chip", "192 GB", "128 GB", "0.7x"},
        Published{"HBM bandwidth, per chip", "8.0 TB/s", "3.2 TB/s", "0.4x"},
        Published{"scale-up bandwidth, one way, per chip", "7,200 Gb/s", "2,800 Gb/s", "0.4x"},
        Published{"scale-out bandwidth, one way, per chip", "400 Gb/s", "400 Gb/s", "1.0x"}),
    PrintedName());

// What simulations use: 384 x 752 TFLOP/s = 288.8 P; 72 x 188,752 MiB = 14.25 TB; 384 x 392 GB/s x
// 8 = 1,204,224 Gb/s; 559,378 W / 288,768 TFLOP/s = 1.937 W/TFLOP.
TEST(DescribeSystems, WhatSimulationsUseStandsBesideThePublishedValue) {
  const std::string table = text({"system", "gb200_nvl72", "cm384"});
  EXPECT_THAT(row(table, "BF16 dense")[3], HasSubstr("CloudMatrix384: 289 PFLOPS ["));
  EXPECT_THAT(row(table, "HBM capacity")[3], HasSubstr("NVL72: 14.3 TB ["));
  EXPECT_THAT(row(table, "scale-up bandwidth, one way")[3], HasSubstr("384: 1,204,224 Gb/s ["));
  EXPECT_THAT(row(table, "all-in power")[3], HasSubstr("384: 559,378 W ["));
  EXPECT_THAT(row(table, "all-in power per BF16 dense")[3], HasSubstr("384: 1.94 W/TFLOP ["));
  EXPECT_EQ(row(table, "HBM bandwidth").size(), 3U);  // no difference, no remark
  for (const char* note : {"use 752 TFLOP/s, published is 780 TFLOP/s", "use 188752 MiB",
                           "use 392 GB/s, published is 350 GB/s", "Zuo et al.", "Li Shang"}) {
    EXPECT_THAT(table, HasSubstr(note));
  }
}

// 72 x 50 PFLOP/s = 3.6 E, 72 x 35 = 2.52 E, 72 x 288 GB = 20.7 TB, 72 x 22 TB/s = 1.584 PB/s, 72 x
// 2 x 1.8 TB/s = 259.2.
TEST(DescribeSystems, VeraRubinHasTheFiguresOfItsAnnouncement) {
  const std::string table = text({"system", "vr_nvl72"});
  EXPECT_THAT(row(table, "NVFP4 inference"), ElementsAre("3.6 EFLOPS"));
  EXPECT_THAT(row(table, "NVFP4 training"), ElementsAre("2.5 EFLOPS"));
  EXPECT_THAT(row(table, "host memory capacity"), ElementsAre("54 TB"));
  EXPECT_EQ(row(table, "HBM capacity")[0], "20.7 TB");  // what fits is an estimate beside it
  EXPECT_THAT(row(table, "HBM bandwidth"), ElementsAre("1.6 PB/s"));
  EXPECT_THAT(row(table, "scale-up bandwidth, both ways"), ElementsAre("259 TB/s"));
  EXPECT_THAT(table, HasSubstr("published as 260 TB/s"));
  EXPECT_THAT(table, HasSubstr("LPDDR5X"));
  EXPECT_THAT(table, HasSubstr("HBM4"));
}

TEST(DescribeSystems, EstimatesAreMarked) {
  EXPECT_THAT(row(text({"system", "vr_nvl72"}), "all-in power"),
              ElementsAre("253,000 W (estimate)"));
  EXPECT_THAT(row(text({"system", "gb200_nvl72"}), "all-in power"), ElementsAre("145,000 W"));
}

TEST(DescribeSystems, OneSystemHasNoRatioAndThreeHaveThatOfTheFirstTwo) {
  EXPECT_THAT(text({"system", "gb200_nvl72"}), Not(HasSubstr("ratio")));
  const auto cells = row(text({"systems", "gb200_nvl72", "cm384", "vr_nvl72"}), "HBM capacity");
  ASSERT_GE(cells.size(), 4U);
  EXPECT_EQ(cells[2], "20.7 TB");
  EXPECT_EQ(cells[3], "3.6x");
}

// 8 x 80 GB over 384 x 128 GB = 0.0130: one decimal would print nothing.
TEST(DescribeSystems, SmallRatiosKeepADigit) {
  EXPECT_EQ(row(text({"system", "cm384", "dgx_h100"}), "HBM capacity")[2], "0.01x");
}

TEST(DescribeSystems, WhatASystemDoesNotHaveIsADash) {
  const auto cells = row(text({"system", "vr_nvl72", "cm384"}), "NVFP4 inference");
  EXPECT_THAT(cells, ElementsAre("3.6 EFLOPS", "-", "-"));
}

TEST(DescribeSystems, JsonHasTheSameNumbers) {
  const auto json = describe({"system", "gb200_nvl72", "cm384"}, library()).json;
  EXPECT_EQ(json["systems"].size(), 2U);
  for (const auto& r : json["rows"]) {
    if (r["label"] != "BF16 dense") continue;
    EXPECT_EQ(r["unit"], "PFLOPS");
    EXPECT_DOUBLE_EQ(r["published"][1].get<double>(), 299.52);
    EXPECT_DOUBLE_EQ(r["simulated"][1].get<double>(), 288.768);
    EXPECT_DOUBLE_EQ(r["ratio"].get<double>(), 299.52 / 180);
    return;
  }
  FAIL() << "no row";
}

TEST(Describe, WithoutWordsListsTheKinds) {
  std::vector<std::string> kinds;
  std::istringstream lines(text({}));
  for (std::string line; std::getline(lines, line);) {
    const std::string kind = line.substr(0, line.find(' '));
    EXPECT_THAT(row(text({}), kind), ElementsAre(testing::SizeIs(testing::Ge(8U)))) << kind;
    kinds.push_back(kind);
  }
  EXPECT_THAT(kinds, ElementsAre("kind", "accelerators", "systems", "models", "layer_models",
                                 "layers", "topologies", "collectives", "operators", "schedulers",
                                 "routers", "workloads", "traces", "schedules", "software",
                                 "kernels", "calibrations", "metrics", "keys"));
}

TEST(Describe, EveryKindHasAListWithOneLineEach) {
  EXPECT_THAT(row(text({"systems"}), "cm384"),
              ElementsAre("Huawei CloudMatrix384, 384 x Huawei Ascend 910C"));
  EXPECT_THAT(row(text({"topologies"}), "nvswitch")[0], HasSubstr("one tier of NVSwitch chips"));
  EXPECT_THAT(row(text({"metrics"}), "bus_bytes_per_s"),
              ElementsAre("bytes that a ring puts on the busiest link over time [B/s] "
                          "(collective)"));
  EXPECT_THAT(row(text({"keys"}), "experiment.system.accelerator.memory.bandwidth"),
              ElementsAre("collective, inference, layers, operator, replay, training: peak, reads "
                          "and writes together [TB/s] (bandwidth (B/s), with source, "
                          "between 1 MB/s and 100 PB/s, required)"));
}

// NVIDIA H100 datasheet (2023): 989.4 TFLOP/s over 3.35 TB/s are 295 FLOP a byte.
TEST(DescribeAccelerators, TheListIsATableOfPublishedFigures) {
  EXPECT_THAT(
      row(text({"accelerators"}), "h100_sxm"),
      ElementsAre("2022", "66.9", "495", "989", "989", "1,979", "1,979", "-", "80", "3,350", "295",
                  "700", "450", "50", "HBM3", "18 x NVLink 4", "NVIDIA H100 SXM5 80GB"));
  EXPECT_THAT(row(text({"accelerators"}), "stm32f746")[0], HasSubstr("~2015"));  // an estimate
}

TEST(DescribeAccelerators, ColumnsSortThem) {
  const auto names = [](const std::string& key) {
    std::vector<std::string> all;
    for (const auto& entry : accelerator_table(library(), key).json) all.push_back(entry["name"]);
    return all;
  };
  EXPECT_EQ(names(""), library().names("accelerators"));
  EXPECT_EQ(names("name"), names(""));
  for (const std::string& key : accelerator_columns()) {
    if (key == "name") continue;
    double before = INFINITY;
    for (const auto& entry : accelerator_table(library(), key).json) {
      const double value = entry[key].is_null() ? -1 : entry[key].get<double>();
      EXPECT_LE(value, before) << key << ' ' << entry["name"];
      before = value;
    }
  }
  EXPECT_THROW(accelerator_table(library(), "bandwith"), UsageError);
}

TEST(DescribeAccelerators, AColumnIsFoundByWhatItMeans) {
  const auto answer = [](const std::string& key) -> std::string {
    try {
      accelerator_table(library(), key);
    } catch (const UsageError& error) {
      return error.what();
    }
    return {};
  };
  EXPECT_THAT(answer("memory"), HasSubstr("did you mean 'capacity'?"));
  EXPECT_THAT(answer("power"), HasSubstr("did you mean 'tdp'?"));
  EXPECT_THAT(answer("bandwith"), HasSubstr("did you mean 'bandwidth'?"));
}

TEST(DescribeAccelerators, JsonHasBaseUnitsAndSaysWhatIsEstimated) {
  for (const auto& entry : accelerator_table(library()).json) {
    if (entry["name"] != "gb200") continue;
    EXPECT_EQ(entry["help"], "NVIDIA GB200 (one GPU), Blackwell GB100, 186 GB HBM3e, 8 TB/s");
    EXPECT_DOUBLE_EQ(entry["bf16"].get<double>(), 2500e12);
    EXPECT_DOUBLE_EQ(entry["bandwidth"].get<double>(), 8e12);
    EXPECT_EQ(entry["links"]["count"], 18);
    EXPECT_THAT(entry["estimates"], testing::Contains("year"));
    return;
  }
  FAIL() << "no gb200";
}

// Tiles or the roofline: no class of kernels is left out of the list, and none is in it twice.
TEST(Describe, KernelsAreThoseOfTheRegistryAndTheRestIsOfTheRoofline) {
  const std::string table = printed(describe({"kernels"}, library()));
  const std::vector<std::string> roofline = row(table, "roofline");
  ASSERT_EQ(roofline.size(), 1U);
  std::string rest;
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values) {
    if (!tile_families().contains(kind)) rest += (rest.empty() ? "" : ", ") + std::string(name);
    EXPECT_EQ(row(table, name)[0], tile_families().contains(kind)
                                       ? "tiles: " + tile_families().at(kind).help
                                       : "no row '" + std::string(name) + "'");
  }
  EXPECT_EQ(roofline[0].substr(0, roofline[0].find(';')), rest);
  EXPECT_THAT(rest, HasSubstr("normalization, elementwise"));
}

TEST(Describe, AnAcceleratorShowsEveryValueWithUnitAndSource) {
  const auto description = describe({"accelerator", "gb200"}, library());
  EXPECT_THAT(printed(description), HasSubstr("188752 MiB"));
  EXPECT_THAT(printed(description), HasSubstr("186 GB"));
  EXPECT_THAT(printed(description), HasSubstr("192 GB"));  // of lectures and the announcement
  EXPECT_THAT(printed(description), HasSubstr("nvidia-smi"));
  for (const auto& value : description.json[0]["values"]) {
    if (value["path"] != "memory.bandwidth") continue;
    EXPECT_DOUBLE_EQ(value["value"].get<double>(), 8e12);
    EXPECT_EQ(value["unit"], "B/s");
    EXPECT_EQ(value["source"], "NVIDIA GB200 NVL72 datasheet (2024)");
    EXPECT_THAT(value["origin"].get<std::string>(), HasSubstr("gb200.yaml"));
    return;
  }
  FAIL() << "no bandwidth";
}

// (32.4 - 6) pJ/B x 4 B = 105.6 pJ, over 2 x 0.26 pJ: 203.1.
TEST(Describe, AnAcceleratorTellsWhatAWordOfMemoryCosts) {
  const auto description = describe({"accelerator", "b200_sxm"}, library());
  EXPECT_THAT(printed(description),
              HasSubstr("a 32-bit word of memory costs 203 multiply-adds of bf16"));
  const auto& cost = description.json[0]["word_cost"];
  EXPECT_EQ(cost["precision"], "bf16");
  EXPECT_NEAR(cost["word_j"].get<double>(), 105.6e-12, 1e-15);
  EXPECT_NEAR(cost["multiply_adds"].get<double>(), 203.1, 0.1);
}

// One sentence in a column of values would push the figures of all rows apart.
TEST(Describe, SentencesDoNotStandInTheColumnOfValues) {
  for (const std::string& name : library().names("accelerators")) {
    const std::string table = text({"accelerator", name});
    EXPECT_LE(table.find("  published  source"), 130U) << name;
    EXPECT_EQ(table.find("approximations."), table.npos) << name;
    EXPECT_EQ(table.find("known_errors."), table.npos) << name;
  }
  EXPECT_THAT(text({"accelerator", "tpu_v5p"}), HasSubstr("approximation: a product runs"));
  EXPECT_THAT(text({"accelerator", "tpu_v5p"}), HasSubstr("that hold the weights"));
  EXPECT_THAT(text({"accelerator", "mi300x"}), HasSubstr("known error: TransformerEngine of 2024"));
}

bool sram_beside_the_units(const std::string& name) {
  const std::string kind = "accelerators";
  return config::load<AcceleratorConfig>(library().locate(kind, name, ""), library(), kind)
             .memory.kind == "SRAM";
}

TEST(Describe, EveryAcceleratorOfTheLibraryTellsIt) {
  for (const std::string& name : library().names("accelerators")) {
    const auto described = describe({"accelerator", name}, library());
    const double cost = described.json[0]["word_cost"]["multiply_adds"].get<double>();
    const bool beside = sram_beside_the_units(name);
    EXPECT_GT(cost, beside ? 1 : 50) << name;
    EXPECT_LT(cost, 1000) << name;
    EXPECT_THAT(printed(described),
                testing::ContainsRegex("a 32-bit word of memory costs [0-9,.]+ multiply-adds"))
        << name;
  }
}

// 989.4 x 16 / 132 = 119.9 TFLOP/s, 3,350 / 8 = 418.75 GB/s.
TEST(Describe, APartTellsItsOwnFigures) {
  const auto description = describe({"accelerator", "h100_1g"}, library());
  EXPECT_THAT(printed(description), HasSubstr("this part has 16 units"));
  EXPECT_THAT(printed(description), HasSubstr("vector 8.109 TFLOP/s"));
  const auto& part = description.json[0]["part"];
  EXPECT_EQ(part["units"], 16);
  EXPECT_NEAR(part["matrix_flops_per_s"]["bf16"].get<double>(), 119.93e12, 0.01e12);
  EXPECT_DOUBLE_EQ(part["memory_bytes_per_s"].get<double>(), 418.75e9);
  EXPECT_FALSE(describe({"accelerator", "h100_sxm"}, library()).json[0].contains("part"));
}

// 8 x 450 GB/s x 8 bit = 28,800 Gb/s.
TEST(DescribeSystems, WithoutPortsThereIsADash) {
  const std::string table = text({"system", "dgx_h100", "iphone_11"});
  EXPECT_THAT(row(table, "scale-up bandwidth, one way"), ElementsAre("28,800 Gb/s", "-", "-"));
  EXPECT_THAT(row(table, "scale-up fabric"), ElementsAre("NVLink 4", "-"));
}

// By hand: 9,604 nodes x (2.048 + 4 x 220 x 0.128 x 1,882 MHz) TFLOP/s = 2,055.5 PFLOP/s, and 9,604
// x (280 + 4 x 560) W; Colossus is 12,500 x 8 H100 of 989.4 TFLOP/s.
TEST(DescribeSystems, MachinesThatWereBuiltStandBesideWhatIsPublishedOfThem) {
  const std::string table = text({"system", "frontier", "colossus"});
  EXPECT_EQ(row(table, "machine, systems")[0], "9,604");
  EXPECT_EQ(row(table, "machine, chips")[1], "100,000 (estimate)");
  EXPECT_EQ(row(table, "machine, BF16 dense")[1], "98.9 EFLOPS (estimate)");
  EXPECT_EQ(row(table, "machine, FP64 peak of the parts")[0], "2,055.6 PFLOPS (estimate)");
  EXPECT_EQ(row(table, "machine, FP64 peak as listed")[0], "2,055.7 PFLOPS");
  EXPECT_EQ(row(table, "machine, FP64 peak as listed")[1], "-");
  EXPECT_EQ(row(table, "machine, power as published")[0], "24.6 MW");
  EXPECT_EQ(row(table, "machine, power as published")[1], "150.0 MW");
  EXPECT_THAT(text({"system", "dgx_h100", "dgx_b200"}), Not(HasSubstr("machine")));
}

TEST(Describe, NamesOfAListShowTheirDetails) {
  const std::string ring = text({"collective", "ring"});
  EXPECT_EQ(ring.rfind("ring: ", 0), 0U);
  EXPECT_THAT(row(ring, "all_reduce")[0], "14 inside");  // 2 (n - 1) steps of 8 ranks
  EXPECT_THAT(text({"metric", "bus_bytes_per_s"}), HasSubstr("[B/s]"));
  EXPECT_THAT(text({"key", "system.scale_up"}), HasSubstr("system.scale_up.efficiency"));
  EXPECT_THAT(text({"key", "system.scale_up"}), Not(HasSubstr("system.scale_out")));
}

TEST(Describe, KeysOfAKindOfExperimentStandWithoutThoseOfItsMachineAndOfOtherKinds) {
  const std::string keys = printed(describe({"keys", "training"}, library()));
  EXPECT_THAT(keys, HasSubstr("experiment.optimizer"));
  EXPECT_THAT(keys, HasSubstr("experiment.system "));
  EXPECT_THAT(keys, Not(HasSubstr("experiment.system.")));
  EXPECT_THAT(keys, Not(HasSubstr("experiment.engine")));
}

TEST(Describe, AMisspeltKindOfExperimentIsSuggestedAmongKeys) {
  try {
    describe({"keys", "trainig"}, library());
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'training'?"));
  }
}

TEST(Describe, KeysOfExperimentsNeedNotSaySo) {
  EXPECT_EQ(printed(describe({"keys", "parallel"}, library())),
            printed(describe({"keys", "experiment.parallel"}, library())));
}

TEST(Describe, AWrongKindOrNameIsAUsageErrorWithASuggestion) {
  EXPECT_THAT(usage_error({"sytems"}), HasSubstr("did you mean 'systems'?"));
  EXPECT_THAT(usage_error({"accelerator", "h10_sxm"}), HasSubstr("did you mean 'h100_sxm'?"));
  EXPECT_THAT(usage_error({"system", "gb200_nvl7"}), HasSubstr("did you mean 'gb200_nvl72'?"));
  EXPECT_THAT(usage_error({"metric", "step_time"}), HasSubstr("unknown metric 'step_time'"));
  EXPECT_THAT(usage_error({"key", "experiment.system.scale_upp"}),
              HasSubstr("did you mean 'experiment.system.scale_up'?"));
  EXPECT_THAT(usage_error({"collective", "rnig"}), HasSubstr("did you mean 'ring'?"));
}

TEST(Describe, AnErrorListsTheNamesUnlessTheyAreMany) {
  EXPECT_THAT(usage_error({"collective", "x"}), HasSubstr("there are: "));
  EXPECT_THAT(usage_error({"system", "x"}), Not(HasSubstr("there are")));
  EXPECT_THAT(usage_error({"system", "colosus_2"}), HasSubstr("like it: colossus, colossus_200k"));
  EXPECT_THAT(usage_error({"metric", "x"}), Not(HasSubstr("there are")));
}

TEST(MetricTable, NamesAreUniqueAndUnitsFollowTheirNames) {
  std::set<std::string> names;
  for (const auto& entry : metric_table()) {
    const MetricInfo& metric = entry.second;
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_FALSE(metric.meaning.empty()) << metric.name;
    EXPECT_FALSE(metric.experiments.empty()) << metric.name;
    const auto ends = [&](const std::string& suffix) {
      return metric.name.size() >= suffix.size() &&
             metric.name.compare(metric.name.size() - suffix.size(), suffix.size(), suffix) == 0;
    };
    if (ends("_ms")) {
      EXPECT_EQ(metric.unit, "ms") << metric.name;
    }
    if (ends("time_s")) {
      EXPECT_EQ(metric.unit, "s") << metric.name;
    }
    if (ends("bytes_per_s")) {
      EXPECT_EQ(metric.unit, "B/s") << metric.name;
    }
  }
  EXPECT_EQ(find_metric("no_such_metric"), nullptr);
}

// What nothing produces is not documented, and what is produced is.
TEST(MetricTable, HasTheMetricsOfTheKindsThatThereAre) {
  for (const char* name : {"step_time_s", "breakdown.bubble_s", "bus_bytes_per_s", "bound",
                           "system_tokens_per_joule", "wall_time_s"})
    EXPECT_NE(find_metric(name), nullptr) << name;
  EXPECT_EQ(find_metric("step_time_s")->follows, Follows::kTime);
  EXPECT_EQ(find_metric("tokens_per_s")->follows, Follows::kRate);
}

}  // namespace
}  // namespace orrery::describe_test
