// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/machine/precision_names.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"
#include "validation/calibration/calibrate.h"
#include "validation/calibration/collective_fit.h"

namespace orrery {
namespace {

std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class Items, class Write>
std::string flow(const Items& items, Write write) {
  return "[" + comma_joined(items, write) + "]";
}

std::string flow(const std::vector<std::int64_t>& numbers) {
  return flow(numbers, [](std::int64_t number) { return std::to_string(number); });
}

std::string errors(const ErrorSummary& e) {
  return fmt::format("{{count: {}, mape: {}, median: {}, p90: {}, bias: {}, worst: {}}}", e.count,
                     print_number(e.mape), print_number(e.median), print_number(e.p90),
                     print_number(e.bias), print_number(e.worst));
}

/// @param indent of the lines, two blanks less for the key above them
void write_parameters(std::ostream& out, const std::string& indent,
                      const std::map<std::string, CalibratedParameter>& parameters) {
  out << indent.substr(2) << "parameters:\n";
  for (const auto& [name, p] : parameters) {
    out << indent << name << ": {value: " << print_number(p.value) << ", unit: " << quoted(p.unit)
        << ", standard_error: " << print_number(p.standard_error)
        << ", provenance: " << to_string(p.provenance) << "}\n";
  }
}

void write_residuals(std::ostream& out, const std::string& indent,
                     const std::vector<ResidualClass>& residuals) {
  out << indent.substr(2) << "residuals:\n";
  for (const ResidualClass& r : residuals) {
    out << indent << "- {below_us: " << print_number(r.below_us) << ", count: " << r.count
        << ", median: " << print_number(r.median) << ", sigma: " << print_number(r.sigma) << "}\n";
  }
}

void write_measurements(std::ostream& out, const std::vector<MeasurementFile>& measurements) {
  out << "measurements:\n";
  for (const MeasurementFile& file : measurements) {
    out << "  - file: " << quoted(file.file) << "\n    sha256: " << quoted(file.sha256)
        << "\n    date: " << quoted(file.date) << "\n    source: " << quoted(file.source)
        << "\n    rows: " << file.rows << "\n";
  }
}

void write_fitted(std::ostream& out, const KernelFit& fit) {
  out << "    fitted: " << flow(fit.fitted, std::identity()) << "\n";
  if (fit.covariance.empty()) return;
  out << "    covariance:\n";
  for (const auto& row : fit.covariance) out << "      - " << flow(row, print_number) << "\n";
}

void write_left_out(std::ostream& out, const std::vector<LeftOutRows>& left_out) {
  if (left_out.empty()) return;
  out << "left_out:\n";
  for (const LeftOutRows& rows : left_out) {
    out << "  - {table: " << rows.table << ", precision: " << to_string(rows.precision)
        << ", rule: " << quoted(rows.rule) << ", rows: " << rows.rows << "}\n";
  }
}

void write_fit(std::ostream& out, const KernelFit& fit) {
  out << "  - table: " << fit.table << "\n    precision: " << to_string(fit.precision)
      << "\n    measurements: " << flow(fit.measurements, quoted) << "\n";
  write_parameters(out, "      ", fit.parameters);
  write_fitted(out, fit);
  out << "    shapes:\n";
  for (const auto& [kind, s] : fit.shapes) {
    out << "      " << to_string(kind) << ": {batch: " << flow(s.batch) << ", m: " << flow(s.m)
        << ", n: " << flow(s.n) << ", k: " << flow(s.k) << "}\n";
  }
  out << "    fit_error: " << errors(fit.fit_error)
      << "\n    held_out_error: " << errors(fit.held_out_error)
      << "\n    structure_error: " << errors(fit.structure_error);
  if (fit.whole_model_error.count > 0)
    out << "\n    whole_model_error: " << errors(fit.whole_model_error);
  if (!fit.sibling.empty()) out << "\n    sibling: " << fit.sibling;
  out << "\n";
  write_residuals(out, "      ", fit.residuals);
  if (fit.ratios.empty()) return;
  out << "    measured_ratios: |\n";
  std::istringstream lines(write_ratios(fit.ratios.all()));
  for (std::string line; std::getline(lines, line);) out << "      " << line << "\n";
}

}  // namespace

std::string to_yaml(const Calibration& calibration) {
  const CalibratedRates& rates = calibration.rates;
  std::ostringstream out;
  out << "# SPDX-License-Identifier: Apache-2.0\n"
         "# Written by `orrery calibrate`; validation/README.md says how to make and read it.\n"
      << "calibration: " << calibration.id << "\naccelerator: " << calibration.accelerator
      << "\nmodel: " << calibration.model << "\nmade_with: " << quoted(calibration.made_with)
      << "\nrates:\n  matrix: {"
      << comma_joined(rates.matrix,
                      [](const auto& of_precision) {
                        return fmt::format("{}: {}", to_string(of_precision.first),
                                           print(of_precision.second));
                      })
      << "}\n  memory: " << print(rates.memory) << "\n  units: " << rates.units
      << "\n  clock: " << print(rates.clock) << "\n  cache: " << print(rates.cache)
      << "\n  power: " << print(rates.power) << "\n";
  write_measurements(out, calibration.measurements);
  write_left_out(out, calibration.left_out);
  out << "fits:\n";
  for (const KernelFit& fit : calibration.fits) write_fit(out, fit);
  return out.str();
}

std::string to_yaml(const NetworkCalibration& calibration) {
  std::ostringstream out;
  out << "# SPDX-License-Identifier: Apache-2.0\n"
         "# Written by `orrery calibrate --system`; validation/README.md says how to make and read "
         "it.\n"
      << "network_calibration: " << calibration.id << "\nsystem: " << calibration.system
      << "\nmade_with: " << quoted(calibration.made_with) << "\n";
  write_measurements(out, calibration.measurements);
  write_parameters(out, "  ", calibration.parameters);
  const CollectiveRange& range = calibration.range;
  out << "range: {least: " << print(range.least) << ", most: " << print(range.most)
      << ", ranks: " << flow(std::vector<std::int64_t>{range.ranks.front(), range.ranks.back()})
      << "}\nfit_error: " << errors(calibration.fit_error)
      << "\nheld_out_error: " << errors(calibration.held_out_error)
      << "\nleft_out_error: " << errors(calibration.left_out_error) << "\n";
  write_residuals(out, "  ", calibration.residuals);
  return out.str();
}

}  // namespace orrery
