// SPDX-License-Identifier: Apache-2.0
#include "sim/app/sweeps/plan/bound_rules.h"

#include <algorithm>
#include <utility>

#include "sim/config/leaf.h"

namespace orrery {
namespace {

using config::ExpressionType;
using config::ExpressionValue;

ExpressionType type_of(const config::Leaf& leaf) {
  using config::TypeKind;
  switch (leaf.type->kind) {
    case TypeKind::kQuantity:
      return {ExpressionType::Kind::kNumber, leaf.type->dimension};
    case TypeKind::kReal:
    case TypeKind::kInteger:
      return {ExpressionType::Kind::kNumber};
    case TypeKind::kFlag:
      return {ExpressionType::Kind::kFlag};
    case TypeKind::kEnum:
      return {ExpressionType::Kind::kWord, {}, config::names_of(*leaf.type->names)};
    default:
      return {ExpressionType::Kind::kWord};
  }
}

ExpressionValue value_of(const config::Type& type, const std::string& text,
                         const std::optional<double>& number) {
  if (number) return *number;
  if (type.kind == config::TypeKind::kFlag) return text == "true";
  return text;
}

const config::Leaf* find(const std::vector<config::Leaf>& leaves, const std::string& path) {
  const auto found = std::ranges::find(leaves, path, &config::Leaf::path);
  return found == leaves.end() ? nullptr : &*found;
}

const CheapFigure* find(const std::vector<CheapFigure>& figures, const std::string& name) {
  const auto found = std::ranges::find(figures, name, &CheapFigure::name);
  return found == figures.end() ? nullptr : &*found;
}

/// Whether setting one path sets the other.
bool concerns(const std::string& a, const std::string& b) {
  return a == b || a.starts_with(b + ".") || b.starts_with(a + ".");
}

}  // namespace

BoundRules::BoundRules(const Sweep& sweep, const PlanBlock& block, const LoadedExperiment& base,
                       const PointGroup* group, const std::vector<bool>& basing)
    : sweep_(sweep), block_(block), base_(base) {
  const PlanRules& rules = sweep.rules[sweep.rows[block.row].case_index];
  if (rules.when.empty() && rules.where.empty()) return;
  leaves_ = base.leaves();
  figures_ = cheap_figures(*base.experiment);
  for (std::size_t axis = 0; axis < basing.size(); ++axis)
    if (basing[axis]) basing_depth_ = static_cast<int>(axis);
  for (std::size_t i = 0; i < rules.when.size(); ++i)
    add(rules.when[i], block.conditions[i], {false, i, 0}, group);
  for (std::size_t i = 0; i < rules.where.size(); ++i)
    add(rules.where[i], true, {true, i, 0}, group);
  std::ranges::stable_sort(rules_, {}, [](const Rule& rule) { return rule.broken.depth; });
}

std::optional<config::Expression> BoundRules::read(const PlanRule& written,
                                                   config::Diagnostics& diagnostics) {
  config::Location where = written.written.where();
  if (written.written.quoted()) ++where.column;
  auto expression = config::Expression::parse(written.text, where, diagnostics);
  if (!expression) return std::nullopt;
  const auto type = [this](const std::string& name) -> std::optional<ExpressionType> {
    if (const config::Leaf* leaf = find(leaves_, name)) return type_of(*leaf);
    const CheapFigure* figure = find(figures_, name);
    if (figure == nullptr) return std::nullopt;
    return ExpressionType{
        figure->is_flag ? ExpressionType::Kind::kFlag : ExpressionType::Kind::kNumber,
        figure->dimension};
  };
  std::vector<std::string> known;
  for (const CheapFigure& figure : figures_) known.push_back(figure.name);
  for (const config::Leaf& leaf : leaves_) known.push_back(leaf.path);
  for (const config::Expression::Name& name : expression->names()) {
    if (type(name.path)) continue;
    const std::string missing = missing_figure(*base_.experiment, name.path);
    if (!missing.empty()) diagnostics.error(name.where, name.length, missing);
  }
  if (!diagnostics.has_errors()) expression->bind(type, known, diagnostics);
  return expression;
}

void BoundRules::add(const PlanRule& written, bool expected, Broken broken,
                     const PointGroup* group) {
  config::Diagnostics diagnostics = sweep_.texts;
  auto expression = read(written, diagnostics);
  diagnostics.throw_if_errors();
  Rule rule{std::move(*expression), expected, broken, {}};
  rule.broken.depth = basing_depth_;
  for (std::size_t i = 0; i < rule.expression.names().size(); ++i) {
    rule.sources.emplace_back();
    if (rule.expression.is_word(i)) continue;
    const std::string& name = rule.expression.names()[i].path;
    rule.sources.back() = source_of(name, group);
    rule.broken.depth = std::max(rule.broken.depth, depth_of(name, rule.sources.back()));
  }
  rules_.push_back(std::move(rule));
}

BoundRules::Source BoundRules::source_of(const std::string& name, const PointGroup* group) const {
  Source source;
  source.leaf = find(leaves_, name);
  if (source.leaf != nullptr) {
    source.path = group != nullptr ? group->find(name) : std::nullopt;
    source.value = value_of(*source.leaf->type, source.leaf->text, source.leaf->value);
  } else {
    source.figure = static_cast<std::size_t>(find(figures_, name) - figures_.data());
  }
  return source;
}

int BoundRules::depth_of(const std::string& name, const Source& source) const {
  const int last = static_cast<int>(block_.axes.size()) - 1;
  if (source.figure) return last;
  for (int axis = last; axis >= 0; --axis)
    for (const AxisKey& key : block_.axes[static_cast<std::size_t>(axis)]->keys())
      if (concerns(key.path, name)) return axis;
  return -1;
}

bool BoundRules::holds(const Rule& rule, const Point& point) const {
  bool can_be = true;
  const bool holds = rule.expression.holds([&](std::size_t name) -> ExpressionValue {
    const Source& source = rule.sources[name];
    if (source.path) {
      const Parameter& parameter = point.values[*source.path]->variation.parameter;
      return value_of(*source.leaf->type, parameter.text, parameter.value);
    }
    if (!source.figure) return source.value;
    const CheapFigure& figure = figures_[*source.figure];
    const auto value = point.figure(figure);
    can_be = can_be && value.has_value();
    if (!value) return std::monostate{};
    if (figure.is_flag) return *value != 0;
    return *value;
  });
  return can_be ? holds : rule.expected;  // what cannot be is found when it runs
}

std::optional<BoundRules::Broken> BoundRules::broken(const Point& point, int first_changed) const {
  for (const Rule& rule : rules_) {
    if (rule.broken.depth < first_changed) continue;
    if (holds(rule, point) != rule.expected) return rule.broken;
  }
  return std::nullopt;
}

}  // namespace orrery
