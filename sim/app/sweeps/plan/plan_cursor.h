// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/sweeps/base/places.h"
#include "sim/app/sweeps/plan/sweep.h"

namespace orrery {

class BoundRules;
class Probe;
struct CheapFigure;

/// What is at a place of a plan.
enum class PlaceKind {
  kPoint,
  kExcluded,  ///< a rule of `where` does not hold
  kNone,      ///< a condition of `when` comes out otherwise than in this block
};

/// Goes through a plan, from index to point by mixed radix: of the plan it keeps the present place,
/// and the experiments that the last points were known by. Rules that need slower axes alone are
/// asked first, and what they exclude is passed over in one step. Serves one thread.
class PlanCursor {
 public:
  /// Begins at the first place. @throws as seek()
  /// @param only places that next() goes to; empty: all of the plan
  explicit PlanCursor(const Sweep& sweep, Places only = {});
  ~PlanCursor();
  PlanCursor(const PlanCursor&) = delete;
  PlanCursor& operator=(const PlanCursor&) = delete;

  bool at_end() const { return place_ >= sweep_.places(); }
  std::uint64_t place() const { return place_; }
  /// @throws config::ConfigError for a value or a rule that turns out to be wrong here
  void seek(std::uint64_t place);
  /// To the first place after those that covers() counts. @throws as seek()
  void next() { move(next_of_only(place_ + covers_)); }

  PlaceKind kind() const { return kind_; }
  /// Number of places from here on, this one included, that are excluded for the same reason; 1
  /// for a point.
  std::uint64_t covers() const { return covers_; }
  /// The index in the `where` of its case of the rule that excludes it.
  std::size_t rule() const { return rule_; }
  std::uint32_t case_index() const { return row().case_index; }
  const SweepRow& row() const { return sweep_.rows[row_index()]; }
  std::uint32_t row_index() const { return block().row; }  ///< index of row() in Sweep::rows

  /// The experiment that the point is one of; null: it is known by loading it alone.
  const std::shared_ptr<PointGroup>& group() const { return group_; }
  /// Values for group()->paths().
  const PointGroup::Values& values() const { return values_; }
  /// Identity of the point; empty where its values cannot stand together.
  std::string identity() const;
  /// Whether its values can stand together, as far as that is told without loading each point.
  bool can_be() const;
  /// The point, to be kept, without its identity.
  SweepPoint point() const;
  /// The point, loaded the long way.
  const LoadedExperiment& whole() const;

 private:
  struct Known;
  using Digits = std::vector<std::uint64_t>;

  const PlanBlock& block() const { return sweep_.blocks[block_]; }
  std::uint64_t next_of_only(std::uint64_t place) const;
  void move(std::uint64_t place);
  void enter(std::size_t block);
  Digits digits_of(std::uint64_t place) const;
  bool find_group();
  std::unique_ptr<Known> know(bool this_point_only) const;
  SweepPoint point_at(const Digits& digits) const;
  void take_values(std::size_t first_changed);
  void judge(std::size_t first_changed);
  Probe& probe() const;
  std::optional<double> figure_of(const CheapFigure& figure) const;

  const Sweep& sweep_;
  Places only_;
  std::uint64_t place_ = 0;
  std::size_t block_;
  Digits digits_;
  Digits strides_;                     ///< places of one step of each axis
  std::vector<bool> basing_;           ///< axes whose values make another base
  std::vector<std::string> replaced_;  ///< paths whose values are replaced in a base
  std::map<std::uint64_t, std::unique_ptr<Known>>
      known_;  ///< groups of this block, by basing digits
  Known* current_ = nullptr;
  std::shared_ptr<PointGroup> group_;
  PointGroup::Values values_;
  PlaceKind kind_ = PlaceKind::kPoint;
  std::uint64_t covers_ = 1;
  std::size_t rule_ = 0;
  mutable std::shared_ptr<const LoadedExperiment> whole_;  ///< this point, once it was loaded
};

}  // namespace orrery
