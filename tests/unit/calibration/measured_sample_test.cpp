// SPDX-License-Identifier: Apache-2.0
// Measured rows that no fit has seen, against what the shipped calibrations predict.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "models/kernels/calibrated_model.h"
#include "models/kernels/tile_model.h"
#include "sim/config/load.h"
#include "validation/calibration/errors.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery::measured_sample_test {
namespace {

/// A device of the library with its kernel model, as experiments have it.
struct Device {
  AcceleratorConfig accelerator;
  std::unique_ptr<TileModel> model;
};

Device device_of(const std::string& name) {
  const config::Library library(ORRERY_SOURCE_DIR "/configs");
  Device device;
  device.accelerator = config::load<AcceleratorConfig>(library.locate("accelerators", name, ""),
                                                       library, "accelerators");
  const std::string file = library.locate("calibrations", device.accelerator.calibration, "");
  device.model = std::make_unique<TileModel>(
      std::make_shared<const CalibratedModel>(load_calibration(file, library)), Fidelity::kAuto,
      Contention(), nullptr);
  return device;
}

double predicted_us(const Device& device, const std::vector<Kernel>& kernels) {
  Picoseconds total = 0;
  for (const Kernel& kernel : kernels)
    total += device.model->cost(kernel, device.accelerator).duration;
  return to_seconds(total).base() * 1e6;
}

/// Predictions by system of the rows of a table.
std::map<std::string, std::vector<Comparison>> compared(const std::string& name) {
  const OperatorTable table =
      read_operator_table(ORRERY_SOURCE_DIR "/validation/measured/" + name + ".csv");
  std::map<std::string, Device> devices;
  std::map<std::string, std::vector<Comparison>> rows;
  for (const OperatorRow& row : table.rows) {
    const std::string& system = table.systems[row.system];
    if (!devices.contains(system)) devices.emplace(system, device_of(system));
    const std::vector<Kernel> kernels =
        operator_kernels(table.kind, row, *row_precision(table.kind, row));
    rows[system].push_back({predicted_us(devices.at(system), kernels), row.latency_us});
    EXPECT_TRUE(is_held_out(shape_group(table.kind, row))) << name;
  }
  return rows;
}

/// What is demanded of a family: mean absolute error of all rows, and of those of one system.
struct Demand {
  const char* family;
  double all, system;
};

class MeasuredSample : public testing::TestWithParam<Demand> {};

TEST_P(MeasuredSample, OfAFamilyIsPredicted) {
  const Demand& demand = GetParam();
  std::vector<Comparison> all;
  for (const auto& [system, rows] : compared(demand.family)) {
    const double error = summarise(rows).mape;
    EXPECT_LE(error, demand.system) << system;
    std::cout << demand.family << " " << system << ": " << rows.size() << " rows, " << error * 100
              << " %\n";
    all.insert(all.end(), rows.begin(), rows.end());
  }
  EXPECT_LE(summarise(all).mape, demand.all);
}

// Whole shape groups are left out of fits, one in four; experts of bf16 and fp8 may be 8 % off.
INSTANTIATE_TEST_SUITE_P(
    Of, MeasuredSample,
    testing::Values(Demand{"gemm", 0.05, 0.06}, Demand{"attention_prefill", 0.04, 0.05},
                    Demand{"attention_decode", 0.05, 0.06}, Demand{"mla_prefill", 0.04, 0.05},
                    Demand{"mla_decode", 0.05, 0.06}, Demand{"moe", 0.08, 0.08}),
    [](const auto& instance) { return std::string(instance.param.family); });

}  // namespace
}  // namespace orrery::measured_sample_test
