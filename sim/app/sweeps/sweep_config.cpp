// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/sweep_config.h"

#include "sim/app/experiments/settings.h"
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

std::vector<SettingList> expand_grid(const config::Node* grid) {
  std::vector<SettingList> points(1);
  if (grid == nullptr) return points;
  for (const auto& axis : grid->entries()) {
    std::vector<SettingList> crossed;
    for (const SettingList& point : points) {
      for (const config::Node& value : axis.value.items()) {
        crossed.push_back(point);
        crossed.back().push_back({axis.key, value, axis.key_origin});
      }
    }
    points = std::move(crossed);
  }
  return points;
}

std::vector<SettingList> expand_axes(const config::Node* axes) {
  const config::Node* grid = axes != nullptr ? axes->find("grid") : nullptr;
  const config::Node* list = axes != nullptr ? axes->find("list") : nullptr;
  std::vector<SettingList> points;
  if (grid != nullptr || list == nullptr) points = expand_grid(grid);
  if (list != nullptr) {
    for (const config::Node& item : list->items()) points.push_back(settings_of(item));
  }
  return points;
}

std::string take_name(SettingList& settings, const std::string& fallback) {
  for (auto setting = settings.begin(); setting != settings.end(); ++setting) {
    if (setting->path != "name") continue;
    std::string name = setting->value.text();
    settings.erase(setting);
    return name;
  }
  return fallback;
}

/// "tp 8, micro 4": the last parts of the paths, with what they are set to.
std::string text_of(const SettingList& settings) {
  std::string text;
  for (const config::Assignment& setting : settings) {
    if (!setting.value.is_scalar()) continue;
    const std::string key = setting.path.substr(setting.path.rfind('.') + 1);
    text += (text.empty() ? "" : ", ") + key + " " + setting.value.text();
  }
  return text;
}

/// What the expansion of a sweep file needs of it.
struct Source {
  const std::string& path;
  const config::Library& library;
  const config::Diagnostics& texts;  ///< without messages: to quote the file
};

/// All points, with what is wrong, each mistake once.
struct Expansion {
  std::vector<SweepPoint> points;
  std::string errors;

  void add_error(const std::string& text) {
    if (errors.find(text) == std::string::npos) errors += text + (text.ends_with('\n') ? "" : "\n");
  }
};

/// Adds the points of one case.
void expand_case(std::size_t index, const SweepCaseConfig& description, const config::Node& node,
                 const Source& source, Expansion& expansion) {
  std::vector<SettingList> variants;
  if (const config::Node* list = node.find("variants")) {
    for (const config::Node& item : list->items()) variants.push_back(settings_of(item));
  }
  if (variants.empty()) variants.emplace_back();
  for (SettingList variant : variants) {
    const std::string name = take_name(variant, description.name);
    for (const SettingList& point : expand_axes(node.find("axes"))) {
      SettingList settings = variant;
      settings.insert(settings.end(), point.begin(), point.end());
      try {
        config::Diagnostics diagnostics = source.texts;
        LoadedExperiment loaded = load_point_with_settings(
            *node.find("base"), settings, source.path, diagnostics, source.library);
        loaded.experiment->name = name;
        expansion.points.push_back({index, name, text_of(point), std::move(loaded)});
      } catch (const config::ConfigError& error) {
        expansion.add_error(error.what());
      }
    }
  }
}

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
std::vector<std::string> paths_of(const std::vector<SweepPoint>& points, std::size_t case_index) {
  std::vector<std::string> paths;
  for (const SweepPoint& point : points) {
    if (point.case_index != case_index) continue;
    for (config::Leaf& leaf : point.loaded.leaves()) paths.push_back(std::move(leaf.path));
    break;  // keys of variants differ in their values
  }
  return paths;
}

/// @throws config::ConfigError where no point at all can be: then the file is wrong, not a point
void require_any(const std::vector<SweepPoint>& points) {
  Expansion impossible;
  for (const SweepPoint& point : points) {
    if (point.loaded.contradiction.empty()) return;
    impossible.add_error(point.loaded.contradiction);
  }
  throw config::ConfigError(
      impossible.errors.empty() ? "error: the sweep has no cases" : impossible.errors,
      {config::Diagnostic{}});
}

}  // namespace

Sweep load_sweep(const std::string& path, const config::Library& library) {
  config::Diagnostics diagnostics;
  const config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  const config::Diagnostics texts = diagnostics;
  Sweep sweep;
  sweep.config = config::read<SweepConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  const config::Node& cases = *node.find("cases");
  for (const config::Node& described : cases.items()) check_axes(described, diagnostics);
  diagnostics.throw_if_errors();
  Expansion expansion;
  const Source source{path, library, texts};
  for (std::size_t index = 0; index < sweep.config.cases.size(); ++index)
    expand_case(index, sweep.config.cases[index], cases.items()[index], source, expansion);
  if (!expansion.errors.empty())
    throw config::ConfigError(expansion.errors, {config::Diagnostic{}});
  require_any(expansion.points);
  for (std::size_t index = 0; index < sweep.config.cases.size(); ++index) {
    const config::Node* choice = cases.items()[index].find("choose");
    if (choice != nullptr)
      check_choice(sweep.config.cases[index].choose, *choice, paths_of(expansion.points, index),
                   diagnostics);
  }
  diagnostics.throw_if_errors();
  sweep.points = std::move(expansion.points);
  return sweep;
}

void check_sweep(const std::string& path) { load_sweep(path); }

}  // namespace orrery
