// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/sweeps/plan/axis.h"
#include "sim/app/sweeps/plan/point_group.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/library.h"

namespace orrery {

/// A variant of a case: the row of the table that its points stand in.
struct SweepRow {
  std::uint32_t case_index = 0;
  std::string name;
  SettingList settings;
};

struct PlanRule {
  std::string text;
  config::Node written;
  /// The condition with the figures in it explained: "memory.fits (whether every rank fits ...)".
  std::string explained() const;
};

struct PlanRules {
  std::vector<PlanRule> when;   ///< those of `when`, in order
  std::vector<PlanRule> where;  ///< those of `where`, in order
};

/// Points of a row that set the same keys: the cross product of some axes, the last one fastest.
struct PlanBlock {
  std::uint32_t row = 0;
  std::vector<std::shared_ptr<const Axis>> axes;
  /// Whether each `when` of the case holds for the points of this block; places where it does not
  /// come out so are no points.
  std::vector<bool> conditions;
  std::uint64_t first = 0;  ///< first place of it in the plan
  std::uint64_t size = 0;   ///< number of places
};

/// One point of a sweep, taken out of the plan.
struct SweepPoint {
  std::uint64_t place = 0;  ///< place of it in the plan
  std::uint32_t case_index = 0;
  std::uint32_t of_variant = 0;  ///< number of settings of the variant; those of the axes follow
  const std::string* name = nullptr;  ///< name of its variant: the row of the table
  SettingList settings;
  std::shared_ptr<const PointGroup> group;  ///< null: it is known by loading it alone
  std::string identity;                     ///< empty where it cannot be
};

/// A plan: what is at each place, none of which is kept. Places go through cases, variants and
/// blocks in order. What a place has is found by PlanCursor.
struct Sweep {
  SweepConfig config;
  std::string path;
  config::Node node;
  config::Diagnostics texts;  ///< texts of files without messages: to quote them
  config::Library library;
  std::vector<SweepRow> rows;
  std::vector<PlanRules> rules;  ///< rules of each case
  std::vector<PlanBlock> blocks;

  /// The cross product: points, places that a rule excludes, and places that are none because a
  /// condition of `when` says so.
  std::uint64_t places() const {
    return blocks.empty() ? 0 : blocks.back().first + blocks.back().size;
  }
  /// The index of the block that has a place.
  std::size_t block_at(std::uint64_t place) const;
  std::uint64_t places_of(std::size_t case_index) const;
  /// Why a run ends with so many failures of a case; empty: it does not.
  std::string too_many(std::uint64_t failures, std::size_t case_index) const;
  const config::Node& base_of(std::uint32_t case_index) const {
    return *node.find("cases")->items()[case_index].find("base");
  }

  /// The experiment of a point, ready to be simulated, read the long way.
  /// @throws config::ConfigError for mistakes; what cannot stand together is its `contradiction`
  LoadedExperiment load_whole(const SweepPoint& point) const;
  /// The same the short way where there is one; then without `node` and `configuration`.
  LoadedExperiment load(const SweepPoint& point) const;
  /// What tells a point from the others of its row: "tp 8, micro 4".
  static std::string axes(const SweepPoint& point);
};

/// Reads a sweep and checks what can be wrong with it: each key, each value of an axis, conditions.
/// @param where a condition beside those of the file, of `--where`; empty: none
/// @param columns columns of every table, of `--columns`, with commas; empty: those of the file
/// @throws config::ConfigError with everything that is wrong
Sweep load_sweep(const std::string& path, const std::string& where = {},
                 const std::string& columns = {},
                 const config::Library& library = config::default_library());

}  // namespace orrery
