// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "validation/calibration/errors.h"

namespace orrery {

/// A row of a table of measured kernels with `power_w`, beside its prediction.
struct KernelPower {
  double measured_w = 0;
  double predicted_w = 0;
  double predicted_us = 0;
  std::string framework;  ///< column `framework`; empty: the table has none
  bool at_limit = false;  ///< measured at 0.97 of `power_limit_w` or above
  bool held_out = false;  ///< whether fits leave its shape group out (shape_group.h)
};

/// Errors of the kernels of one table, device, framework and class. `Comparison` has watts here.
struct KernelPowerGroup {
  std::vector<Comparison> fitted;    ///< shape groups that fits may see
  std::vector<Comparison> held_out;  ///< the others
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

/// Hears of each predicted row: the row as its file has it, and the prediction.
using KernelPowerRow = std::function<void(const std::string& text, const KernelPower& row)>;

/// Predicts the power of each kernel of a table in the burst state and adds its error to `report`.
/// The columns are those of operator tables with `power_w`, `power_limit_w` and `power_samples`.
/// @return the header of the table
/// @throws config::ConfigError as read_operator_table(), and for missing columns of power
std::string add_power_table(const std::string& path, KernelPowerReport& report,
                            const KernelPowerRow& heard = nullptr);

}  // namespace orrery
