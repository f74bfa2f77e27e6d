// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "validation/calibration/errors.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// A row of a table of measured kernels with `power_w`, beside its prediction.
struct KernelPower {
  double measured_w = 0;
  double predicted_w = 0;
  double floor_w = 0;  ///< power of the device while a job holds it
  double predicted_us = 0;
  std::string framework;  ///< column `framework`; empty: the table has none
  bool at_limit = false;  ///< measured at 0.97 of `power_limit_w` or above
  bool held_out = false;  ///< whether fits leave its shape group out (operator_kernels.h)
};

/// Watts of kernels.
struct KernelPowerRows {
  std::vector<Comparison> steady;  ///< the kernel, repeated without pause
  /// The reading nearest to the measured one that such a kernel can give (possible_reading()).
  std::vector<Comparison> readings;
};

/// Kernels of one table, device, framework and class.
struct KernelPowerGroup {
  KernelPowerRows fitted;    ///< shape groups that fits may see
  KernelPowerRows held_out;  ///< the others
};

/// Table, system, framework, class ("at the limit" or "below the limit").
using KernelPowerKey = std::array<std::string, 4>;

struct KernelPowerReport {
  std::map<KernelPowerKey, KernelPowerGroup> groups;
  std::size_t short_runs = 0;                   ///< rows that are not to be trusted
  std::map<std::string, std::size_t> left_out;  ///< rows by reason
};

/// Whether a reading tells the power of its kernel. NVML gives the mean of the last second, so a
/// run has to be long: 300 us a kernel with five readings; or hot enough to be held by the limit,
/// from 100 us on.
bool trusted_reading(double latency_us, double samples, double power_over_limit);

/// What NVML can say of a kernel that draws `steady_w` and runs for a second: the mean, over that
/// second, of means of the last second. After a pause at `floor_w` that is the floor and half of
/// the rise; straight after kernels that are as hot, all of it.
/// @return the value of that range nearest to `measured_w`
double possible_reading(double floor_w, double steady_w, double measured_w);

/// Hears of each predicted row: the row as its file has it, and the prediction.
using KernelPowerRow = std::function<void(const std::string& text, const KernelPower& row)>;

/// Predicts the power of each kernel of a table in the burst state and adds its error to `report`.
/// The columns are those of operator tables with `power_w`, `power_limit_w` and `power_samples`.
/// @param path names the table in errors
/// @throws config::ConfigError for missing columns of power
void add_power_table(const std::string& path, const OperatorTable& table, KernelPowerReport& report,
                     const KernelPowerRow& heard = nullptr);

}  // namespace orrery
