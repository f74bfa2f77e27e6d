// SPDX-License-Identifier: Apache-2.0
#include "validation/calibration/collective_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "sim/config/load.h"
#include "validation/calibration/collective_predictor.h"
#include "validation/calibration/errors.h"

namespace orrery::collective_fit_test {
namespace {

SystemConfig load_system(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<SystemConfig>(library.locate("systems", name, ""), library, "systems");
}

/// A table that a system with these parameters would have measured.
CollectiveTable synthetic(const SystemConfig& system) {
  const CollectivePredictor predictor(system);
  CollectiveTable table;
  for (const char* collective : {"all_reduce", "all_gather", "reduce_scatter", "alltoall"}) {
    for (const int ranks : {2, 4, 8}) {
      for (std::int64_t bytes = 512; bytes <= 1 << 29; bytes *= 2) {
        CollectiveRow row;
        row.system = system.accelerator.id;
        row.collective = collective;
        row.precision = bytes % 3 == 0 ? "int8" : "fp16";
        row.ranks = ranks;
        row.bytes = bytes;
        row.latency_us = predictor.priced(table.kind, row)[0].isolated_time.base() * 1e6;
        table.rows.push_back(row);
      }
    }
  }
  return table;
}

TEST(CollectiveFit, ParametersThatMadeTheTimesAreFoundAgain) {
  const SystemConfig prior = load_system("dgx_h100");
  SystemConfig truth = prior;
  truth.scale_up.protocols->launch.value = Seconds(3.1e-6);
  truth.scale_up.protocols->ll_hop.value = Seconds(1.3e-6);
  truth.scale_up.protocols->simple_efficiency.value = 0.71;
  truth.scale_up.protocols->nvls_efficiency.value = 0.5;
  const NetworkCalibration found =
      calibrate_network(prior, {{synthetic(truth), {"table", "", "", "", 0}}}, "test");
  EXPECT_NEAR(found.parameters.at("launch").value, 3.1, 0.05);
  EXPECT_NEAR(found.parameters.at("ll_hop").value, 1.3, 0.02);
  EXPECT_NEAR(found.parameters.at("simple_efficiency").value, 0.71, 0.01);
  EXPECT_NEAR(found.parameters.at("nvls_efficiency").value, 0.5, 0.01);
  EXPECT_LT(found.held_out_error.mape, 0.005);
  EXPECT_GT(found.held_out_error.count, 20);
  EXPECT_GT(found.fit_error.count, 2 * found.held_out_error.count);
}

TEST(CollectiveFit, WhatNoRowTellsStaysAtItsPrior) {
  const SystemConfig prior = load_system("dgx_h100");
  const NetworkCalibration found =
      calibrate_network(prior, {{synthetic(prior), {"table", "", "", "", 0}}}, "test");
  const CalibratedParameter& launch = found.parameters.at("one_shot_launch");
  EXPECT_EQ(launch.provenance, ParameterProvenance::kPrior);
  EXPECT_NEAR(launch.value, prior.scale_up.protocols->one_shot_launch.value.base() * 1e6, 1e-9);
}

TEST(CollectiveFit, ATableWithoutRowsOfTheSystemIsAUserError) {
  EXPECT_THROW(
      calibrate_network(load_system("dgx_h100"),
                        {{synthetic(load_system("dgx_b200")), {"table", "", "", "", 0}}}, "test"),
      config::ConfigError);
}

TEST(CollectiveFit, EveryCalibrationOfTheLibraryFitsItsSystem) {
  const config::Library& library = config::default_library();
  for (const std::string& name : library.names("network_calibrations")) {
    const NetworkCalibration calibration =
        load_network_calibration(library.locate("network_calibrations", name, ""));
    EXPECT_EQ(calibration.system, name);
    EXPECT_LE(calibration.parameters.size(), 20U) << name;
    SystemConfig system = load_system(name);
    calibration.apply(system);
    EXPECT_NEAR(system.scale_up.protocols->launch.value.base() * 1e6,
                calibration.parameters.at("launch").value, 1e-9);
    EXPECT_EQ(measured_system(system.accelerator.id), name);
  }
}

TEST(CollectiveFit, ASystemThatNobodyMeasuredTakesTheCalibrationOfItsSibling) {
  const std::map<std::string, std::string> siblings = {{"gb300", "gb200_nvl72"},
                                                       {"h800_sxm", "dgx_h100"},
                                                       {"h20", "dgx_h100"},
                                                       {"a100_sxm_40", "dgx_a100"}};
  for (const auto& [accelerator, sibling] : siblings) {
    const std::string name = measured_system(accelerator);
    ASSERT_FALSE(name.empty()) << accelerator;
    EXPECT_EQ(load_system(name).scale_up.calibration, sibling);
  }
  EXPECT_EQ(measured_system("b300_sxm"), "dgx_b300");
  EXPECT_EQ(measured_system("gb300"), "gb300_nvl72");
  EXPECT_EQ(measured_system("mi300x"), "");  // no protocols
}

/// Parameters are shares of the line rate and times of switches and of the library: the same
/// generation of switches, reached by links of the same rate.
TEST(CollectiveFit, ASiblingHasTheSameSwitchesAndLinksOfTheSameRate) {
  const config::Library& library = config::default_library();
  for (const std::string& name : library.names("systems")) {
    const SystemConfig system = load_system(name);
    if (system.scale_up.calibration.empty()) continue;
    const SystemConfig sibling = load_system(system.scale_up.calibration);
    const auto link = [](const SystemConfig& s) {
      return s.accelerator.scale_up.bandwidth.value.base() / s.accelerator.scale_up.links.value;
    };
    EXPECT_EQ(system.scale_up.kind, sibling.scale_up.kind) << name;
    EXPECT_EQ(system.accelerator.scale_up.kind, sibling.accelerator.scale_up.kind) << name;
    EXPECT_NEAR(link(system) / link(sibling), 1, 1e-9) << name;
  }
}

/// Rows that no fit has seen, a few of each system, collective and class of bytes.
TEST(CollectiveFit, MeasuredCollectivesArePredicted) {
  const CollectiveTable table =
      read_collective_table(ORRERY_SOURCE_DIR "/validation/measured/collective_nccl.csv");
  const config::Library& library = config::default_library();
  std::map<std::string, std::vector<Comparison>> classes, by_system;
  for (const std::string& name : library.names("network_calibrations")) {
    SystemConfig system = load_system(name);
    load_network_calibration(library.locate("network_calibrations", name, "")).apply(system);
    const CollectivePredictor predictor(system);
    for (const CollectiveRow& row : table.rows) {
      if (row.system != system.accelerator.id) continue;
      EXPECT_TRUE(is_held_out(row));
      const double predicted = predictor.priced(table.kind, row)[0].isolated_time.base() * 1e6;
      classes[byte_class(row.bytes)].push_back({predicted, row.latency_us});
      by_system[name + byte_class(row.bytes)].push_back({predicted, row.latency_us});
    }
  }
  EXPECT_LE(summarise(classes["<1MiB"]).mape, 0.08);
  EXPECT_LE(summarise(classes["1-8MiB"]).mape, 0.09);
  EXPECT_LE(summarise(classes[">8MiB"]).mape, 0.05);
  for (const auto& [name, rows] : by_system) EXPECT_LE(summarise(rows).mape, 0.10) << name;
}

}  // namespace
}  // namespace orrery::collective_fit_test
