// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe_calibration.h"

#include <nlohmann/json.hpp>

#include "models/kernels/parameter_limits.h"
#include "sim/units/text.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

Table error_table(const std::vector<Calibration>& calibrations) {
  Table table = Table::titled(
      "accelerator | table | precision | >fitted | >MAPE | >held out | >without ratios | >ratios | "
      ">MAPE | >median | >p90 | >bias | >worst | >whole models");
  for (const Calibration& calibration : calibrations) {
    for (const KernelFit& fit : calibration.fits) {
      const ErrorSummary& e = fit.held_out_error;
      table.add_row({calibration.accelerator, fit.table, to_string(fit.precision),
                     std::to_string(fit.fit_error.count), format_percent(fit.fit_error.mape),
                     std::to_string(e.count), mape(fit.structure_error),
                     std::to_string(fit.ratios.size()), format_percent(e.mape),
                     format_percent(e.median), format_percent(e.p90), format_percent(e.bias),
                     format_percent(e.worst), mape(fit.whole_model_error)});
    }
  }
  return table;
}

Table parameter_table(const Calibration& calibration) {
  Table table =
      Table::titled("table | precision | parameter | >value | >standard error | unit | rests on");
  for (const KernelFit& fit : calibration.fits) {
    for (const auto& [name, p] : fit.parameters) {
      table.add_row({fit.table, to_string(fit.precision), name, print_number(p.value),
                     print_number(p.standard_error), p.unit, to_string(p.provenance)});
    }
  }
  return table;
}

/// What the measurements ask for lies outside of what the family can say.
std::string limits_text(const std::vector<ParameterAtLimit>& limits) {
  if (limits.empty()) return {};
  std::string text = "at a limit of their family, no estimates:";
  for (const ParameterAtLimit& limit : limits)
    text += "\n  " + limit.fit->table + " " + to_string(limit.fit->precision) + ": " + limit.name +
            " = " + print_number(limit.value);
  return text + "\n\n";
}

Table measurement_table(const Calibration& calibration) {
  Table table = Table::titled("file | >rows | date | sha256 | source");
  for (const MeasurementFile& file : calibration.measurements) {
    table.add_row(
        {file.file, std::to_string(file.rows), file.date, file.sha256.substr(0, 12), file.source});
  }
  return table;
}

Json to_json(const Calibration& calibration) {
  const std::vector<ParameterAtLimit> limits = parameters_at_limits(calibration);
  Json fits = Json::array();
  for (const KernelFit& fit : calibration.fits) {
    Json parameters = Json::object();
    for (const auto& [name, p] : fit.parameters) {
      parameters[name] = {{"value", p.value},
                          {"unit", p.unit},
                          {"standard_error", p.standard_error},
                          {"provenance", to_string(p.provenance)}};
    }
    Json at_limits = Json::array();
    for (const ParameterAtLimit& limit : limits)
      if (limit.fit == &fit) at_limits.push_back(limit.name);
    fits.push_back({{"table", fit.table},
                    {"precision", to_string(fit.precision)},
                    {"parameters", std::move(parameters)},
                    {"at_limits", std::move(at_limits)},
                    {"fitted", to_json(fit.fit_error)},
                    {"held_out", to_json(fit.held_out_error)},
                    {"held_out_without_ratios", to_json(fit.structure_error)},
                    {"whole_models", to_json(fit.whole_model_error)},
                    {"sibling", fit.sibling},
                    {"ratios", fit.ratios.size()}});
  }
  Json files = Json::array();
  for (const MeasurementFile& file : calibration.measurements) {
    files.push_back({{"file", file.file},
                     {"sha256", file.sha256},
                     {"date", file.date},
                     {"source", file.source},
                     {"rows", file.rows}});
  }
  return {{"name", calibration.id},
          {"accelerator", calibration.accelerator},
          {"model", calibration.model},
          {"measurements", std::move(files)},
          {"left_out", left_out_json({calibration})},
          {"fits", std::move(fits)}};
}

}  // namespace

std::string mape(const ErrorSummary& errors) {
  return errors.count > 0 ? format_percent(errors.mape) : "-";
}

std::string left_out_text(const std::vector<Calibration>& calibrations) {
  std::string text;
  const auto subject = [](const Calibration& calibration, const std::string& table,
                          Precision precision) {
    return calibration.accelerator + " " + table + " " + to_string(precision);
  };
  for (const Calibration& calibration : calibrations) {
    for (const LeftOutRows& rows : calibration.left_out)
      text += subject(calibration, rows.table, rows.precision) +
              ": left out by the written rule: " + std::to_string(rows.rows) + " rows, " +
              rows.rule + "\n";
    for (const KernelFit& fit : calibration.fits)
      if (!fit.sibling.empty())
        text += subject(calibration, fit.table, fit.precision) +
                ": kernels that break physics have the parameters of '" + fit.sibling +
                "' by data sheet, extrapolated\n";
  }
  return text;
}

nlohmann::ordered_json left_out_json(const std::vector<Calibration>& calibrations) {
  Json entries = Json::array();
  for (const Calibration& calibration : calibrations)
    for (const LeftOutRows& rows : calibration.left_out)
      entries.push_back({{"accelerator", calibration.accelerator},
                         {"table", rows.table},
                         {"precision", to_string(rows.precision)},
                         {"rule", rows.rule},
                         {"rows", rows.rows}});
  return entries;
}

Answer describe_calibrations(const std::vector<Calibration>& calibrations) {
  Answer answer{.parts = {error_table(calibrations), left_out_text(calibrations)},
                .json = Json::array()};
  if (calibrations.size() == 1) {
    const Calibration& one = calibrations.front();
    answer.add("\n");
    answer.add(parameter_table(one));
    answer.add("\n" + limits_text(parameters_at_limits(one)));
    answer.add(measurement_table(one));
  }
  for (const Calibration& calibration : calibrations) answer.json.push_back(to_json(calibration));
  return answer;
}

}  // namespace orrery
