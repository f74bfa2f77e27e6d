// SPDX-License-Identifier: Apache-2.0
// What-ifs on a chip of somebody's own, whose file gives no sources: sizes by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/app/experiments/core/simulate.h"
#include "sim/config/load.h"

namespace orrery::own_chip_what_ifs_test {
namespace {

using Set = std::vector<std::string>;
using testing::HasSubstr;

const std::string kA = "system.accelerator.";

/// 400 TFLOP/s in bf16, of which kernels reach 0.8; 3 TB/s, 0.8 reached. No cap holds at 2 kW.
std::string chip(int units) {
  return "{accelerator: nova, name: Nova, compute: {units: " + std::to_string(units) +
         ", clock: 1.6 GHz, boost_clock: 2 GHz, matrix: {bf16: 400 TFLOP/s}, vector: 50 TFLOP/s}, "
         "memory: {capacity: 96 GB, bandwidth: 3 TB/s, stacks: 6, bus_width: 1024, data_rate: "
         "3.90625 Gb/s}, core: {registers: 256 KiB, shared_memory: 228 KiB, shared_bandwidth: 250 "
         "GB/s}, cache: {capacity: 64 MiB, bandwidth: 6 TB/s}, scale_up: {kind: X, links: 18, "
         "bandwidth: 450 GB/s}, power: {tdp: 2 kW, idle: 80 W}, energy: {matrix: {bf16: 0.4 "
         "pJ/FLOP}, vector: 6 pJ/FLOP, memory: 40 pJ/B, scale_up: 10 pJ/bit}, kernel: "
         "{matrix_efficiency: {bf16: 0.8}, vector_efficiency: 0.7, memory_efficiency: 0.8, "
         "exponent: 4, launch: 3 us}}";
}

std::string on(const std::string& accelerator, const std::string& rest) {
  return "{experiment: operator, system: {extends: dgx_h100, accelerator: " + accelerator +
         "}, precision: bf16, " + rest + "}";
}

// 1.0995 TFLOP: 3.436 ms of products, 3 us of launch.
const std::string kProductOf = "operator: {kind: gemm, m: 8192, n: 8192, k: 8192}";
const std::string kProduct = on(chip(100), kProductOf);
// 4.295 GB of keys and values: 1.790 ms, and five launches.
const std::string kCache =
    on(chip(100),
       "operator: {kind: attention_decode, batch: 128, kv_length: 8192, heads: 32, kv_heads: 8, "
       "head_dim: 128}");

LoadedExperiment loaded(const std::string& text, const Set& set) {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  config::Diagnostics diagnostics;
  return load_experiment(config::parse_yaml(text, "own.yaml", diagnostics), set, diagnostics,
                         library);
}

double time_of(const LoadedExperiment& experiment) {
  return simulate(experiment).find("time_s")->value;
}

double ratio(const std::string& text, const Set& set) {
  return time_of(loaded(text, set)) / time_of(loaded(text, {}));
}

double bf16(const LoadedExperiment& experiment) {
  const auto& system = experiment.as<MachineExperiment>().system;
  return system.accelerator.compute.matrix.at(Precision::kBf16).value.base();
}

// 3.436 x 0.8 + 0.003 of 3.439 ms.
TEST(OwnChipWhatIfs, AQuarterMoreUnitsOrClockTakesFourFifthsOfAProduct) {
  EXPECT_NEAR(ratio(kProduct, {kA + "compute.units=125"}), 0.8002, 0.0005);
  EXPECT_NEAR(ratio(kProduct, {kA + "compute.clock=2 GHz"}), 0.8002, 0.0005);
  EXPECT_NEAR(ratio(kProduct, {kA + "compute.boost_clock=2.5 GHz"}), 0.8002, 0.0005);
  EXPECT_NEAR(ratio(kProduct, {kA + "compute.matrix.bf16=500 TFLOP/s"}), 0.8002, 0.0005);
}

TEST(OwnChipWhatIfs, ARateThatTheSameWhatIfSetsStays) {
  EXPECT_NEAR(ratio(kProduct, {kA + "compute.units=125", kA + "compute.matrix.bf16=400 TFLOP/s"}),
              1, 1e-9);
}

// (1.790 x 0.75 + 0.015) of 1.805 ms; data rate x 1.28: (1.790 / 1.28 + 0.015) of it.
TEST(OwnChipWhatIfs, StacksAndPinsOfTheMemoryAreItsBandwidth) {
  EXPECT_NEAR(ratio(kCache, {kA + "memory.stacks=8"}), 0.752, 0.005);
  EXPECT_NEAR(ratio(kCache, {kA + "memory.data_rate=5 Gb/s"}), 0.783, 0.005);
  EXPECT_NEAR(ratio(kCache, {kA + "memory.bandwidth=4 TB/s"}), 0.752, 0.005);
}

// The roofline of a device without a calibration knows neither; `explain` lists them.
TEST(OwnChipWhatIfs, CachesAndRegistersMoveNothingOnPriors) {
  for (const char* set : {"cache.capacity=128 MiB", "cache.bandwidth=12 TB/s",
                          "core.registers=512 KiB", "core.shared_memory=456 KiB"})
    EXPECT_EQ(ratio(kProduct, {kA + set}), 1) << set;
}

TEST(OwnChipWhatIfs, TilesWithoutACalibrationAreRefused) {
  try {
    loaded(kProduct, {"fidelity=tile"});
    FAIL() << "tiles on priors";
  } catch (const config::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no calibration tells how blocks run on Nova"));
    EXPECT_THAT(error.what(), HasSubstr("h100_sxm"));
  }
}

// `sensitivity` and `explain` change what --set has changed: 500 x 1.25 TFLOP/s.
TEST(OwnChipWhatIfs, AWhatIfOnTopScalesWhatTheFirstOneSet) {
  const LoadedExperiment first = loaded(kProduct, {kA + "compute.matrix.bf16=500 TFLOP/s"});
  config::Diagnostics diagnostics;
  const LoadedExperiment second =
      load_experiment(first.node, {kA + "compute.units=125"}, diagnostics);
  EXPECT_NEAR(bf16(second), 625e12, 1);
}

// 125 units at 400 TFLOP/s are another chip than 100 units that became 125.
TEST(OwnChipWhatIfs, AWhatIfIsAnotherPointThanAFileWithTheSameFigure) {
  const LoadedExperiment file = loaded(on(chip(125), kProductOf), {});
  const LoadedExperiment set = loaded(kProduct, {kA + "compute.units=125"});
  EXPECT_EQ(bf16(file), 400e12);
  EXPECT_EQ(bf16(set), 500e12);
  EXPECT_NE(file.identity, set.identity);
}

}  // namespace
}  // namespace orrery::own_chip_what_ifs_test
