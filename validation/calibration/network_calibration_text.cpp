// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/units/text.h"
#include "validation/calibration/collective_fit.h"

namespace orrery {
namespace {

std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

void write_errors(std::ostream& out, const char* name, const ErrorSummary& e) {
  out << name << ": {count: " << e.count << ", mape: " << print_number(e.mape)
      << ", median: " << print_number(e.median) << ", p90: " << print_number(e.p90)
      << ", bias: " << print_number(e.bias) << ", worst: " << print_number(e.worst) << "}\n";
}

}  // namespace

std::string to_yaml(const NetworkCalibration& calibration) {
  std::ostringstream out;
  out << "# SPDX-License-Identifier: Apache-2.0\n"
         "# Written by `orrery calibrate --system`; validation/README.md says how to make and read "
         "it.\n"
      << "network_calibration: " << calibration.id << "\nsystem: " << calibration.system
      << "\nmade_with: " << quoted(calibration.made_with) << "\nmeasurements:\n";
  for (const MeasurementFile& file : calibration.measurements) {
    out << "  - file: " << quoted(file.file) << "\n    sha256: " << quoted(file.sha256)
        << "\n    date: " << quoted(file.date) << "\n    source: " << quoted(file.source)
        << "\n    rows: " << file.rows << "\n";
  }
  out << "parameters:\n";
  for (const auto& [name, p] : calibration.parameters) {
    out << "  " << name << ": {value: " << print_number(p.value) << ", unit: " << quoted(p.unit)
        << ", standard_error: " << print_number(p.standard_error)
        << ", provenance: " << to_string(p.provenance) << "}\n";
  }
  const CollectiveRange& range = calibration.range;
  out << "range: {least: " << print(range.least) << ", most: " << print(range.most) << ", ranks: ["
      << range.ranks.front() << ", " << range.ranks.back() << "]}\n";
  write_errors(out, "fit_error", calibration.fit_error);
  write_errors(out, "held_out_error", calibration.held_out_error);
  write_errors(out, "left_out_error", calibration.left_out_error);
  out << "residuals:\n";
  for (const ResidualClass& r : calibration.residuals) {
    out << "  - {below_us: " << print_number(r.below_us) << ", count: " << r.count
        << ", median: " << print_number(r.median) << ", sigma: " << print_number(r.sigma) << "}\n";
  }
  return out.str();
}

}  // namespace orrery
