// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/sweep.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/experiments/cheap_figures.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/sweeps/plan/check_sweep.h"
#include "sim/app/sweeps/plan/plan_builder.h"
#include "sim/config/expression.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/units/comma_separated.h"

namespace orrery {

std::string PlanRule::explained() const {
  config::Diagnostics ignored;
  const auto expression = config::Expression::parse(text, {}, ignored);
  std::string figures;
  for (const auto& name :
       expression ? expression->names() : std::vector<config::Expression::Name>{}) {
    const std::string help = figure_help(name.path);
    if (help.empty()) continue;
    figures += (figures.empty() ? "" : "; ") + (name.path == text ? help : name.path + ": " + help);
  }
  return figures.empty() ? text : text + " (" + figures + ")";
}

LoadedExperiment Sweep::load_whole(const SweepPoint& point) const {
  config::Diagnostics diagnostics = texts;
  LoadedExperiment loaded =
      load_point_with_settings(base_of(point.case_index), point.settings, diagnostics, library);
  loaded.experiment->name = *point.name;
  return loaded;
}

LoadedExperiment Sweep::load(const SweepPoint& point) const {
  if (point.group == nullptr) return load_whole(point);
  std::optional<LoadedExperiment> loaded = point.group->load(point.settings);
  if (!loaded) return load_whole(point);
  loaded->identity = point.identity;
  loaded->experiment->name = *point.name;
  return std::move(*loaded);
}

std::string Sweep::axes(const SweepPoint& point) {
  std::string text;
  for (std::size_t i = point.of_variant; i < point.settings.size(); ++i) {
    const config::Assignment& setting = point.settings[i];
    if (!setting.value.is_scalar()) continue;
    const std::string key = setting.path.substr(setting.path.rfind('.') + 1);
    text += (text.empty() ? "" : ", ") + key + " " + setting.value.text();
  }
  return text;
}

namespace {

/// Adds a condition to those of the file.
void add_condition(const std::string& where, config::Node& node, config::Diagnostics& diagnostics) {
  const std::string option = "--where";
  const config::Origin origin{config::Origin::Kind::kFile,
                              std::make_shared<const std::string>(option), 1, 1};
  diagnostics.add_source(option, where);
  config::Node all = config::Node::sequence(origin);
  if (const config::Node* written = node.find("where"))
    for (const config::Node& rule : items_of(*written)) all.append(rule);
  all.append(config::Node::scalar(where, origin));
  node.set("where", std::move(all), node.key_origin("where"));
}

/// Puts columns in the place of those that the tables of the file ask for.
void set_columns(const std::string& columns, config::Node& node, config::Diagnostics& diagnostics) {
  const std::string option = "--columns";
  const auto file = std::make_shared<const std::string>(option);
  diagnostics.add_source(option, columns);
  config::Node list = config::Node::sequence({config::Origin::Kind::kFile, file, 1, 1});
  for (const std::string_view name : comma_separated(columns)) {
    const auto column = static_cast<int>(name.data() - columns.data()) + 1;
    list.append(
        config::Node::scalar(std::string(name), {config::Origin::Kind::kFile, file, 1, column}));
  }
  config::Node* cases = node.find("cases");
  for (std::size_t i = 0; cases != nullptr && i < cases->items().size(); ++i) {
    config::Node& described = cases->item(i);
    if (!described.is_map()) continue;  // is reported when it is read
    if (described.find("table") == nullptr || !described.find("table")->is_map())
      described.set("table", config::Node::map(list.origin()), list.origin());
    described.find("table")->set("columns", list, list.origin());
  }
}

}  // namespace

Sweep load_sweep(const std::string& path, const std::string& where, const std::string& columns,
                 const config::Library& library) {
  config::Diagnostics diagnostics;
  config::Node node = config::load_file(path, diagnostics, library);
  diagnostics.throw_if_errors();
  if (!where.empty()) add_condition(where, node, diagnostics);
  if (!columns.empty()) set_columns(columns, node, diagnostics);
  Sweep sweep{.config = {},
              .path = path,
              .node = std::move(node),
              .texts = diagnostics,
              .library = library,
              .rows = {},
              .rules = {},
              .blocks = {}};
  sweep.config = config::read<SweepConfig>(sweep.node, diagnostics, library);
  diagnostics.throw_if_errors();
  build_plan(sweep);
  check_sweep(sweep);
  return sweep;
}

namespace {

const RegisterFileKind registered_sweep(
    "sweep", {"a sweep",
              "sweep run",
              {"sweep"},
              [](const config::Node& own) { return own.find("sweep") != nullptr ? 60 : 0; },
              [](const std::string& path) {
                require_points(load_sweep(path));
                return std::string();
              },
              {},
              [] { return config::json_schema(SweepConfig::schema().record()); }});

}  // namespace

}  // namespace orrery
