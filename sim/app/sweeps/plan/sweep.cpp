// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/sweep.h"

#include <fmt/core.h>
#include <algorithm>
#include <optional>
#include <utility>

#include "sim/app/experiments/cheap_figures.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/sweeps/plan/check_sweep.h"
#include "sim/config/expression.h"
#include "sim/config/leaf.h"
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

std::size_t Sweep::block_at(std::uint64_t place) const {
  const auto after = std::ranges::upper_bound(blocks, place, {}, &PlanBlock::first);
  return static_cast<std::size_t>(after - blocks.begin()) - 1;
}

std::uint64_t Sweep::places_of(std::size_t case_index) const {
  std::uint64_t places = 0;
  for (const PlanBlock& block : blocks)
    if (rows[block.row].case_index == case_index) places += block.size;
  return places;
}

std::string Sweep::too_many(std::uint64_t failures, std::size_t case_index) const {
  const SweepCaseConfig& of = config.cases[case_index];
  const LimitsConfig limits = config.limits_of(of);
  const auto allowed = limits.failures_allowed(places_of(case_index));
  if (!allowed || failures <= *allowed) return {};
  return fmt::format("{} points of '{}' failed, max_failures is {}", failures, of.name,
                     limits.max_failures);
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

/// Places beyond which a plan is a mistake: their numbers stay exact as doubles.
constexpr std::uint64_t kMostPlaces = std::uint64_t{1} << 53U;
/// Each `when` doubles the blocks of a case.
constexpr std::size_t kMostConditions = 6;

/// What is written of a key at the top of the file and in a case, where it is.
std::vector<const config::Node*> written(const Sweep& sweep, const config::Node& described,
                                         std::string_view key) {
  std::vector<const config::Node*> nodes;
  for (const config::Node* part : {static_cast<const config::Node*>(&sweep.node), &described})
    if (const config::Node* node = part->find(key)) nodes.push_back(node);
  return nodes;
}

class CaseBuilder {
 public:
  CaseBuilder(Sweep& sweep, std::uint32_t index, config::Diagnostics& diagnostics)
      : sweep_(sweep),
        index_(index),
        described_(sweep.node.find("cases")->items()[index]),
        config_(sweep.config.cases[index]),
        diagnostics_(diagnostics),
        reader_([this](const std::string& path) { return is_integer(path); },
                sweep.config.seed_of(config_), diagnostics) {}

  void build() {
    add_rows();
    add_rules();
    read_axes();
    read_conditional_axes();
    if (diagnostics_.has_errors()) return;
    for (const std::uint32_t row : rows_) add_blocks(row);
  }

 private:
  using Axes = AxisReader::Axes;

  void add_rows() {
    const config::Node* list = described_.find("variants");
    if (list == nullptr || list->items().empty()) return add_row({index_, config_.name, {}});
    for (const config::Node& variant : list->items()) {
      const config::Node* name = variant.find("name");
      if (name == nullptr || name->text().find_first_not_of(' ') == std::string::npos)
        diagnostics_.error(variant.where(), variant.length(), "a variant needs a name", {},
                           {"name: the row of the table that its points stand in"});
      add_row(row_of(variant));
    }
  }

  SweepRow row_of(const config::Node& variant) const {
    SweepRow row{index_, config_.name, {}};
    for (const auto& entry : variant.entries()) {
      if (entry.key == "name") {
        row.name = entry.value.text();
      } else {
        row.settings.push_back({entry.key, entry.value, entry.key_origin});
      }
    }
    return row;
  }

  void add_row(SweepRow row) {
    rows_.push_back(static_cast<std::uint32_t>(sweep_.rows.size()));
    sweep_.rows.push_back(std::move(row));
  }

  void add_rules() {
    PlanRules rules;
    for (const config::Node* list : written(sweep_, described_, "when"))
      for (const config::Node& item : list->items())
        rules.when.push_back({item.find("if")->text(), *item.find("if")});
    for (const config::Node* list : written(sweep_, described_, "where"))
      for (const config::Node& item : items_of(*list)) rules.where.push_back({item.text(), item});
    if (rules.when.size() > kMostConditions) {
      const config::Node& last = rules.when.back().written;
      diagnostics_.error(last.where(), last.length(),
                         "a case has at most " + std::to_string(kMostConditions) + " 'when'");
    }
    sweep_.rules.push_back(std::move(rules));
  }

  /// Whether the base has a whole number at a path. It is read for axes whose numbers are made.
  bool is_integer(const std::string& path) {
    if (!leaves_read_) {
      leaves_read_ = true;
      config::Diagnostics diagnostics = sweep_.texts;
      const LoadedExperiment base =
          load_point_with_settings(*described_.find("base"), sweep_.rows[rows_.front()].settings,
                                   diagnostics, sweep_.library);
      leaves_ = base.leaves();
    }
    return std::ranges::any_of(leaves_, [&](const config::Leaf& leaf) {
      return leaf.path == path && leaf.type->kind == config::TypeKind::kInteger;
    });
  }

  void read_axes() {
    for (const config::Node* axes : written(sweep_, described_, "axes")) {
      const bool of_file = axes == sweep_.node.find("axes");
      const AxesConfig& config = of_file ? sweep_.config.axes : config_.axes;
      const config::Node* grid = axes->find("grid");
      const config::Node* zip = axes->find("zip");
      const config::Node* random = axes->find("random");
      const config::Node* list = axes->find("list");
      if (grid != nullptr) reader_.add_grid(*grid, config.grid, product_);
      if (zip != nullptr) reader_.add_zip(*zip, config.zip, product_);
      if (random != nullptr && config.random) reader_.add_random(*random, *config.random, product_);
      has_product_ = has_product_ || grid != nullptr || zip != nullptr || random != nullptr;
      has_list_ = has_list_ || list != nullptr;
      if (list == nullptr) continue;
      if (list->items().empty())
        diagnostics_.error(list->where(), list->length(),
                           "'list' has no values: there is no point");
      for (auto& axis : reader_.list(*list)) list_.push_back(std::move(axis));
    }
  }

  void read_conditional_axes() {
    const auto read = [this](const config::Node& list, const std::vector<WhenConfig>& when) {
      for (std::size_t i = 0; i < when.size(); ++i) {
        const config::Node& item = list.items()[i];
        Axes axes;
        if (const config::Node* grid = item.find("grid"))
          reader_.add_grid(*grid, when[i].grid, axes);
        if (const config::Node* zip = item.find("zip")) reader_.add_zip(*zip, when[i].zip, axes);
        if (axes.empty() && !diagnostics_.has_errors())
          diagnostics_.error(item.where(), item.length(), "a 'when' needs a grid or a zip");
        conditional_.push_back(std::move(axes));
      }
    };
    if (const config::Node* list = sweep_.node.find("when")) read(*list, sweep_.config.when);
    if (const config::Node* list = described_.find("when")) read(*list, config_.when);
  }

  void add_blocks(std::uint32_t row) {
    if (has_product_ || !has_list_) add_conditioned(row, product_);
    for (const auto& axis : list_) add_conditioned(row, {axis});
  }

  /// A block for each way in which the conditions can come out.
  void add_conditioned(std::uint32_t row, const Axes& axes) {
    for (std::size_t way = 0; way < std::size_t{1} << conditional_.size(); ++way) {
      PlanBlock block;
      block.row = row;
      block.axes = axes;
      for (std::size_t i = 0; i < conditional_.size(); ++i) {
        const bool holds = ((way >> i) & 1U) != 0;
        block.conditions.push_back(holds);
        if (holds)
          block.axes.insert(block.axes.end(), conditional_[i].begin(), conditional_[i].end());
      }
      refuse_repeated(block);
      add(std::move(block));
    }
  }

  void refuse_repeated(const PlanBlock& block) {
    std::vector<const AxisKey*> keys;
    for (const auto& axis : block.axes) {
      for (const AxisKey& key : axis->keys()) {
        for (const AxisKey* other : keys) {
          if (other->path != key.path) continue;
          diagnostics_.error(key.origin.location(), static_cast<int>(key.path.size()),
                             "two axes set '" + key.path + "'", {},
                             {"the other is at " + other->origin.text()});
          diagnostics_.throw_if_errors();
        }
        keys.push_back(&key);
      }
    }
  }

  void add(PlanBlock block) {
    block.first = sweep_.places();
    block.size = 1;
    for (const auto& axis : block.axes) {
      if (axis->size() == 0) return;
      if (block.size > (kMostPlaces - block.first) / axis->size()) {
        diagnostics_.error(described_.where(), 1,
                           "this case has more than 9 * 10^15 points, which nobody can number");
        diagnostics_.throw_if_errors();
      }
      block.size *= axis->size();
    }
    sweep_.blocks.push_back(std::move(block));
  }

  Sweep& sweep_;
  std::uint32_t index_;
  const config::Node& described_;
  const SweepCaseConfig& config_;
  config::Diagnostics& diagnostics_;
  AxisReader reader_;
  std::vector<std::uint32_t> rows_;
  bool leaves_read_ = false;
  std::vector<config::Leaf> leaves_;
  Axes product_, list_;
  std::vector<Axes> conditional_;  ///< axes of each `when`
  bool has_product_ = false, has_list_ = false;
};

/// Lays out the rows, rules and blocks of a sweep whose file is read. Values are not tried yet.
/// @throws config::ConfigError for axes that make no plan
void build_plan(Sweep& sweep) {
  config::Diagnostics diagnostics = sweep.texts;
  for (std::uint32_t index = 0; index < sweep.config.cases.size(); ++index)
    CaseBuilder(sweep, index, diagnostics).build();
  diagnostics.throw_if_errors();
}

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

int is_sweep(const config::Node& own) { return own.find("sweep") != nullptr ? 60 : 0; }

std::string check_points(const std::string& file) {
  require_points(load_sweep(file));
  return {};
}

const RegisterFileKind registered_sweep(
    "sweep", schema_kind<SweepConfig>({"a sweep", "sweep run", {"sweep"}, is_sweep, check_points}));

}  // namespace

}  // namespace orrery
