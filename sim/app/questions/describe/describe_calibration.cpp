// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "models/kernels/parameter_limits.h"
#include "sim/results/json_table.h"
#include "sim/units/text.h"
#include "validation/calibration/error_json.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

Table error_table(const Json& calibrations) {
  Json rows = Json::array();
  for (const Json& calibration : calibrations)
    for (const Json& fit : calibration.at("fits")) {
      rows.push_back(fit);
      rows.back()["accelerator"] = calibration.at("accelerator");
    }
  return json_table(rows,
                    "accelerator = accelerator | table = table | precision = precision | "
                    "fitted = fitted.count count | MAPE = fitted.mape percent | held out = "
                    "held_out.count count | "
                    "without ratios = held_out_without_ratios.mape error | ratios = ratios count | "
                    "MAPE = held_out.mape percent | median = held_out.median percent | "
                    "p90 = held_out.p90 percent | bias = held_out.bias percent | "
                    "worst = held_out.worst percent | whole models = whole_models.mape error");
}

Table parameter_table(const Calibration& calibration) {
  Table table =
      Table::titled("table | precision | parameter | >value | >standard error | unit | rests on");
  for (const KernelFit& fit : calibration.fits) {
    for (const auto& [name, p] : fit.parameters)
      table.add_row({fit.table, to_string(fit.precision), name, print_number(p.value),
                     print_number(p.standard_error), p.unit, to_string(p.provenance)});
  }
  return table;
}

/// What the measurements ask for lies outside of what the family can say.
std::string limits_text(const std::vector<ParameterAtLimit>& limits) {
  if (limits.empty()) return {};
  std::string text = "at a limit of their family, no estimates:";
  for (const ParameterAtLimit& limit : limits)
    text += fmt::format("\n  {} {}: {} = {}", limit.fit->table, to_string(limit.fit->precision),
                        limit.name, print_number(limit.value));
  return text + "\n\n";
}

Table measurement_table(const Calibration& calibration) {
  Table table = Table::titled("file | >rows | date | sha256 | source");
  for (const MeasurementFile& file : calibration.measurements)
    table.add_row(
        {file.file, std::to_string(file.rows), file.date, file.sha256.substr(0, 12), file.source});
  return table;
}

Json to_json(const Calibration& calibration) {
  const std::vector<ParameterAtLimit> limits = parameters_at_limits(calibration);
  Json fits = Json::array();
  for (const KernelFit& fit : calibration.fits) {
    Json parameters = Json::object();
    for (const auto& [name, p] : fit.parameters)
      parameters[name] = {{"value", p.value},
                          {"unit", p.unit},
                          {"standard_error", p.standard_error},
                          {"provenance", to_string(p.provenance)}};
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
  for (const MeasurementFile& file : calibration.measurements)
    files.push_back({{"file", file.file},
                     {"sha256", file.sha256},
                     {"date", file.date},
                     {"source", file.source},
                     {"rows", file.rows}});
  return {{"name", calibration.id},
          {"accelerator", calibration.accelerator},
          {"model", calibration.model},
          {"measurements", std::move(files)},
          {"left_out", left_out_json({calibration})},
          {"fits", std::move(fits)}};
}

}  // namespace

std::string left_out_text(const std::vector<Calibration>& calibrations) {
  std::string text;
  for (const Calibration& calibration : calibrations) {
    for (const LeftOutRows& rows : calibration.left_out)
      text += fmt::format("{} {} {}: left out by the written rule: {} rows, {}\n",
                          calibration.accelerator, rows.table, to_string(rows.precision), rows.rows,
                          rows.rule);
    for (const KernelFit& fit : calibration.fits)
      if (!fit.sibling.empty())
        text += fmt::format(
            "{} {} {}: kernels that break physics have the parameters of '{}' by data sheet, "
            "extrapolated\n",
            calibration.accelerator, fit.table, to_string(fit.precision), fit.sibling);
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
  Answer answer{.parts = {}, .json = Json::array()};
  for (const Calibration& calibration : calibrations) answer.json.push_back(to_json(calibration));
  answer.add(error_table(answer.json));
  answer.add(left_out_text(calibrations));
  if (calibrations.size() == 1) {
    const Calibration& one = calibrations.front();
    answer.add("\n");
    answer.add(parameter_table(one));
    answer.add("\n" + limits_text(parameters_at_limits(one)));
    answer.add(measurement_table(one));
  }
  return answer;
}

}  // namespace orrery
