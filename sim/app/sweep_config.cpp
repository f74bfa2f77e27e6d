// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweep_config.h"

#include <functional>

#include "sim/app/settings.h"
#include "sim/config/load.h"

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

struct Expansion {
  std::vector<SweepPoint> points;
  std::string errors;
};

/// Adds the points of one case; errors of all points are collected, each kind once.
void expand_case(std::size_t index, const SweepCaseConfig& description, const config::Node& node,
                 const std::string& path, const config::Library& library, Expansion& expansion) {
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
        LoadedExperiment loaded = load_with_settings(*node.find("base"), settings, path, library);
        loaded.experiment.name = name;
        expansion.points.push_back({index, name, std::move(loaded)});
      } catch (const config::ConfigError& error) {
        const std::string text = error.what();
        if (expansion.errors.find(text) == std::string::npos)
          expansion.errors += text + (text.ends_with('\n') ? "" : "\n");
      }
    }
  }
}

}  // namespace

Sweep load_sweep(const std::string& path, const config::Library& library) {
  config::Diagnostics diagnostics;
  const config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  Sweep sweep;
  sweep.config = config::read<SweepConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  Expansion expansion;
  const config::Node& cases = *node.find("cases");
  for (std::size_t index = 0; index < sweep.config.cases.size(); ++index) {
    expand_case(index, sweep.config.cases[index], cases.items()[index], path, library, expansion);
  }
  if (!expansion.errors.empty())
    throw config::ConfigError(expansion.errors, {config::Diagnostic{}});
  sweep.points = std::move(expansion.points);
  return sweep;
}

void check_sweep(const std::string& path) { load_sweep(path); }

}  // namespace orrery
