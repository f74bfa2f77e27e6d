// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/sweep_config.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/experiments/file_kind.h"
#include "sim/app/experiments/settings.h"
#include "sim/app/sweeps/expand.h"
#include "sim/config/load.h"
#include "sim/config/output.h"

namespace orrery {

using config::Schema;

const Schema<AxesConfig>& AxesConfig::schema() {
  static const auto schema =
      Schema<AxesConfig>("axes", "points of a case")
          .optional("grid", &AxesConfig::grid, "path: [values]; all combinations")
          .optional("list", &AxesConfig::list, "explicit points: {path: value, ...}");
  return schema;
}

const Schema<ChooseConfig>& ChooseConfig::schema() {
  static const auto schema =
      Schema<ChooseConfig>("choose", "which point of a row the table shows")
          .optional("maximize", &ChooseConfig::maximize, "metric or configuration path")
          .optional("minimize", &ChooseConfig::minimize, "metric or configuration path")
          .optional("at_most", &ChooseConfig::at_most, "metric: upper limit")
          .optional("at_least", &ChooseConfig::at_least, "metric: lower limit")
          .check(
              "maximize and minimize exclude each other",
              [](const ChooseConfig& c) { return c.maximize.empty() || c.minimize.empty(); },
              "minimize");
  return schema;
}

const Schema<SweepCaseConfig>& SweepCaseConfig::schema() {
  static const auto schema =
      Schema<SweepCaseConfig>("case", "one comparison of a sweep")
          .required("name", &SweepCaseConfig::name, "title of its table")
          .required("base", &SweepCaseConfig::base, "an experiment: path or inline")
          .optional("variants", &SweepCaseConfig::variants, "rows: {name: ..., path: value, ...}")
          .optional("axes", &SweepCaseConfig::axes, "points of every row")
          .optional("choose", &SweepCaseConfig::choose, "which point of a row the table shows");
  return schema;
}

const Schema<SweepConfig>& SweepConfig::schema() {
  static const auto schema =
      Schema<SweepConfig>("sweep", "a design-space exploration into one store")
          .named("sweep", &SweepConfig::name)
          .required("cases", &SweepConfig::cases, "comparisons, in the order of the tables");
  return schema;
}

namespace {

/// A list without items leaves a case without points, which nobody means.
void check_axes(const config::Node& described, config::Diagnostics& diagnostics) {
  const config::Node* axes = described.find("axes");
  if (axes == nullptr) return;
  const config::Node* grid = axes->find("grid");
  const config::Node* list = axes->find("list");
  const auto complain = [&diagnostics](const config::Node& empty, const std::string& what) {
    diagnostics.error(empty.where(), empty.length(), what + " has no values: there is no point");
  };
  if (list != nullptr && list->items().empty()) complain(*list, "'list'");
  if (grid == nullptr) return;
  for (const auto& axis : grid->entries())
    if (axis.value.items().empty()) complain(axis.value, "the axis '" + axis.key + "'");
}

/// What the points of a case can be optimised for beside metrics.
std::vector<std::string> paths_of(const Sweep& sweep, std::size_t case_index) {
  std::vector<std::string> paths;
  for (const SweepPoint& point : sweep.points) {
    if (point.case_index != case_index || point.group == SweepPoint::kNoGroup) continue;
    for (const Parameter& parameter : sweep.groups[point.group]->configuration()->parameters)
      paths.push_back(parameter.path);
    break;  // keys of variants differ in their values
  }
  return paths;
}

/// @throws config::ConfigError where no point at all can be: then the file is wrong, not a point
void require_any(const Sweep& sweep) {
  if (sweep.impossible.size() < sweep.points.size()) return;
  std::string errors;
  for (const auto& [index, point] : sweep.impossible)
    if (errors.find(point.contradiction) == std::string::npos) errors += point.contradiction;
  throw config::ConfigError(errors.empty() ? "error: the sweep has no cases" : errors,
                            {config::Diagnostic{}});
}

}  // namespace

LoadedExperiment Sweep::load_whole(const SweepPoint& point) const {
  SettingList list;
  list.reserve(point.settings.size());
  for (const config::Assignment* setting : point.settings) list.push_back(*setting);
  config::Diagnostics diagnostics = texts;
  const config::Node& described = node.find("cases")->items()[point.case_index];
  LoadedExperiment loaded =
      load_point_with_settings(*described.find("base"), list, path, diagnostics, library);
  loaded.experiment->name = *point.name;
  return loaded;
}

LoadedExperiment Sweep::load(const SweepPoint& point) const {
  if (point.group == SweepPoint::kNoGroup) return load_whole(point);
  std::optional<LoadedExperiment> loaded = groups[point.group]->load(point.settings);
  if (!loaded) return load_whole(point);
  loaded->identity = point.identity;
  loaded->experiment->name = *point.name;
  return std::move(*loaded);
}

std::string Sweep::axes(const SweepPoint& point) {
  std::string text;
  for (std::size_t i = point.of_variant; i < point.settings.size(); ++i) {
    const config::Assignment& setting = *point.settings[i];
    if (!setting.value.is_scalar()) continue;
    const std::string key = setting.path.substr(setting.path.rfind('.') + 1);
    text += (text.empty() ? "" : ", ") + key + " " + setting.value.text();
  }
  return text;
}

Sweep load_sweep(const std::string& path, const config::Library& library) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  Sweep sweep{.config = {},
              .path = path,
              .node = std::move(node),
              .texts = diagnostics,
              .library = library,
              .names = {},
              .settings = {},
              .groups = {},
              .points = {},
              .impossible = {}};
  sweep.config = config::read<SweepConfig>(sweep.node, diagnostics, library);
  diagnostics.throw_if_errors();
  const config::Node& cases = *sweep.node.find("cases");
  for (const config::Node& described : cases.items()) check_axes(described, diagnostics);
  diagnostics.throw_if_errors();
  expand(sweep);
  require_any(sweep);
  for (std::size_t index = 0; index < sweep.config.cases.size(); ++index) {
    const config::Node* choice = cases.items()[index].find("choose");
    if (choice != nullptr)
      check_choice(sweep.config.cases[index].choose, *choice, paths_of(sweep, index), diagnostics);
  }
  diagnostics.throw_if_errors();
  return sweep;
}

namespace {

const RegisterFileKind registered_sweep(
    "sweep", {"a sweep",
              "sweep run",
              {"sweep"},
              [](const config::Node& own) { return own.find("sweep") != nullptr ? 60 : 0; },
              [](const std::string& path) {
                load_sweep(path);
                return std::string();
              },
              {},
              [] { return config::json_schema(SweepConfig::schema().record()); }});

}  // namespace

}  // namespace orrery
