// SPDX-License-Identifier: Apache-2.0
#include "validation/checks/power_tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "sim/app/pricing/kernel_pricing.h"
#include "sim/app/pricing/power_balance.h"
#include "sim/config/load.h"
#include "validation/calibration/operator_kernels.h"

namespace orrery {
namespace {

struct PowerDevice {
  AcceleratorConfig accelerator;
  std::unique_ptr<KernelModel> model;
};

std::optional<PowerDevice> power_device(const std::string& system) {
  const config::Library& library = config::default_library();
  const std::string path = library.locate("accelerators", system, "");
  if (!std::filesystem::exists(path)) return std::nullopt;
  PowerDevice device;
  device.accelerator = config::load<AcceleratorConfig>(path, library, "accelerators");
  device.model = kernel_model("auto", device.accelerator);
  return device;
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells = {""};
  for (const char c : line) {
    if (c == ',') {
      cells.emplace_back();
    } else {
      cells.back() += c;
    }
  }
  return cells;
}

/// Columns that operator tables keep in `text` alone. Their tables have no quoted cells.
class PowerColumns {
 public:
  PowerColumns(const std::string& path, const std::string& header) : names_(cells_of(header)) {
    for (const char* name : {"power_w", "power_limit_w", "power_samples"})
      if (!place(name)) throw config::ConfigError(path + ": no column '" + name + "'");
  }
  double number(const std::vector<std::string>& cells, const char* name) const {
    return std::strtod(cells.at(*place(name)).c_str(), nullptr);
  }
  std::string text(const std::vector<std::string>& cells, const char* name) const {
    const auto at = place(name);
    return at && *at < cells.size() ? cells[*at] : "";
  }

 private:
  std::optional<std::size_t> place(const char* name) const {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names_.begin());
  }
  std::vector<std::string> names_;
};

void predict_power(const PowerDevice& device, const std::vector<Kernel>& kernels,
                   KernelPower& row) {
  const OperatorPower power =
      settle_operator(kernels, device.accelerator, PowerState::kBurst, *device.model);
  Seconds time;
  for (const KernelCost& cost : power.costs) time += to_seconds(cost.duration);
  row.predicted_us = time.base() * 1e6;
  row.floor_w = device.accelerator.power.floor().base();
  row.predicted_w = (power.energy.total() / time).base() * device.accelerator.dies;
}

}  // namespace

bool trusted_reading(double latency_us, double samples, double power_over_limit) {
  constexpr double kLong = 300, kShort = 100, kAtLimit = 0.97;
  if (latency_us >= kLong && samples >= 5) return true;
  return latency_us >= kShort && power_over_limit >= kAtLimit;
}

double possible_reading(double floor_w, double steady_w, double measured_w) {
  const double cold = floor_w + 0.5 * (steady_w - floor_w);
  return std::clamp(measured_w, std::min(cold, steady_w), std::max(cold, steady_w));
}

void add_power_table(const std::string& path, const OperatorTable& table, KernelPowerReport& report,
                     const KernelPowerRow& heard) {
  constexpr double kAtLimit = 0.97;
  const PowerColumns columns(path, table.header);
  std::vector<std::optional<PowerDevice>> devices;
  for (const std::string& system : table.systems) devices.push_back(power_device(system));
  for (const OperatorRow& measured : table.rows) {
    const std::vector<std::string> cells = cells_of(measured.text);
    KernelPower row;
    row.measured_w = columns.number(cells, "power_w");
    row.framework = columns.text(cells, "framework");
    const double of_limit = row.measured_w / columns.number(cells, "power_limit_w");
    row.at_limit = of_limit >= kAtLimit;
    if (!trusted_reading(measured.latency_us, columns.number(cells, "power_samples"), of_limit)) {
      ++report.short_runs;
      continue;
    }
    const std::string& system = table.systems[measured.system];
    const auto& device = devices[measured.system];
    const auto precision = row_precision(table.kind, measured);
    if (!device || !precision || !find_precision(device->accelerator.compute.matrix, *precision)) {
      ++report.left_out[fmt::format("{}: no model of {} on {}", to_string(table.kind),
                                    measured.precision, system)];
      continue;
    }
    predict_power(*device, operator_kernels(table.kind, measured, *precision), row);
    row.held_out = is_held_out(shape_group(table.kind, measured));
    KernelPowerGroup& group = report.groups[{to_string(table.kind), system, row.framework,
                                             row.at_limit ? "at the limit" : "below the limit"}];
    KernelPowerRows& rows = row.held_out ? group.held_out : group.fitted;
    rows.steady.push_back({row.predicted_w, row.measured_w});
    rows.readings.push_back(
        {possible_reading(row.floor_w, row.predicted_w, row.measured_w), row.measured_w});
    if (heard) heard(measured.text, row);
  }
}

}  // namespace orrery
