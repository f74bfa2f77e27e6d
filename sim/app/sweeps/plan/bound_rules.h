// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/cheap_figures.h"
#include "sim/app/sweeps/plan/sweep.h"
#include "sim/config/expression.h"

namespace orrery {

/// The conditions of a case, with what their names stand for in one experiment: values that points
/// replace, values of the base, figures. Those that slower axes decide come first.
class BoundRules {
 public:
  /// A rule that does not hold.
  struct Broken {
    bool is_where = false;  ///< a rule of `where`; else of `when`
    std::size_t index = 0;  ///< place of the rule there
    int depth = 0;          ///< the fastest axis that it depends on; -1: none
  };
  /// What is known of a point.
  struct Point {
    const PointGroup::Values& values;
    /// A figure of it; none: its values cannot stand together.
    std::function<std::optional<double>(const CheapFigure& figure)> figure;
  };

  /// @param base a point of the block, which outlives this; its values at `group`'s paths are
  /// replaced
  /// @param group null: nothing is
  /// @param basing whether values of an axis make another base
  /// @throws config::ConfigError at the place in the expression
  BoundRules(const Sweep& sweep, const PlanBlock& block, const LoadedExperiment& base,
             const PointGroup* group, const std::vector<bool>& basing);

  bool empty() const { return rules_.empty(); }
  /// The first rule that does not hold, of those that depend on an axis from `first_changed` on.
  std::optional<Broken> broken(const Point& point, int first_changed) const;

 private:
  /// What a name of an expression stands for.
  struct Source {
    std::optional<std::size_t> path;  ///< value that points replace
    std::optional<std::size_t> figure;
    const config::Leaf* leaf = nullptr;  ///< leaf of the base; it has the type
    config::ExpressionValue value = {};  ///< where points have neither
  };
  struct Rule {
    config::Expression expression;
    bool expected = true;
    Broken broken;
    std::vector<Source> sources;  ///< sources by name of the expression
  };

  void add(const PlanRule& written, bool expected, Broken broken, const PointGroup* group);
  std::optional<config::Expression> read(const PlanRule& written, config::Diagnostics& diagnostics);
  Source source_of(const std::string& name, const PointGroup* group) const;
  int depth_of(const std::string& name, const Source& source) const;
  bool holds(const Rule& rule, const Point& point) const;

  const Sweep& sweep_;
  const PlanBlock& block_;
  const LoadedExperiment& base_;
  int basing_depth_ = -1;
  std::vector<config::Leaf> leaves_;  ///< leaves of the base
  std::vector<CheapFigure> figures_;
  std::vector<Rule> rules_;
};

}  // namespace orrery
