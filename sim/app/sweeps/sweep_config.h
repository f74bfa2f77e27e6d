// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/app/sweeps/point_group.h"
#include "sim/config/library.h"
#include "sim/config/schema.h"
#include "sim/results/run_record.h"

namespace orrery {

/// Points of a case: the cross product of `grid`, then those of `list`. Keys are dotted paths of
/// the experiment.
struct AxesConfig {
  std::map<std::string, std::vector<config::Node>> grid;
  std::vector<std::map<std::string, config::Node>> list;
  static const config::Schema<AxesConfig>& schema();
};

/// Which point of those with one name the table shows; without maximize and minimize all that keep
/// the limits. Limits are on metrics, with their unit ("50 ms") where metrics have one. What is
/// optimised is a metric or a configuration path. A quantile of a metric is "step_time_s.p90".
struct ChooseConfig {
  std::string maximize;
  std::string minimize;
  std::map<std::string, config::Node> at_most;
  std::map<std::string, config::Node> at_least;
  static const config::Schema<ChooseConfig>& schema();
};

/// One comparison: a base experiment, and variants of it (rows of the table), each crossed with the
/// axes. A variant may have a `name`; variants of the same name are one row.
struct SweepCaseConfig {
  std::string name;
  config::Node base;  ///< path of an experiment, or an experiment
  std::vector<std::map<std::string, config::Node>> variants;
  AxesConfig axes;
  ChooseConfig choose;
  static const config::Schema<SweepCaseConfig>& schema();
};

struct SweepConfig {
  std::string name;
  std::vector<SweepCaseConfig> cases;
  static const config::Schema<SweepConfig>& schema();
};

/// One point of a sweep: what is set, and what tells it from others; its experiment is made when it
/// is asked for.
struct SweepPoint {
  static constexpr std::uint32_t kNoGroup = ~std::uint32_t{0};

  std::uint32_t case_index = 0;
  std::uint32_t group = kNoGroup;  ///< index in Sweep::groups; none: the point cannot be
  std::uint32_t of_variant = 0;    ///< number of settings of the variant; those of the axes follow
  const std::string* name = nullptr;  ///< name of its variant: the row of the table
  PointSettings settings;
  std::string identity;  ///< empty where it cannot be
};

/// A point that was found not to be while the sweep was read.
struct ImpossiblePoint {
  std::string contradiction;
  std::shared_ptr<const Configuration> configuration;
};

/// All points in a fixed order: cases, variants, grid (last key fastest), list.
struct Sweep {
  SweepConfig config;
  std::string path;
  config::Node node;
  config::Diagnostics texts;  ///< texts of files without messages: to quote them
  config::Library library;
  std::deque<std::string> names;
  std::deque<config::Assignment> settings;  ///< settings of all points
  std::vector<std::unique_ptr<PointGroup>> groups;
  std::vector<SweepPoint> points;
  std::map<std::size_t, ImpossiblePoint> impossible;  ///< points by place in `points`

  /// The experiment of a point, ready to be simulated, read the long way.
  /// @throws config::ConfigError for mistakes; what cannot stand together is its `contradiction`
  LoadedExperiment load_whole(const SweepPoint& point) const;
  /// The same the short way where there is one; then without `node` and `configuration`.
  LoadedExperiment load(const SweepPoint& point) const;
  /// What tells a point from the others of its row: "tp 8, micro 4".
  static std::string axes(const SweepPoint& point);
};

/// @throws config::ConfigError with everything that is wrong in any of the points, those that
/// cannot be left out unless none can.
Sweep load_sweep(const std::string& path,
                 const config::Library& library = config::default_library());

/// The record that `choose` picks of one row, or null if none keeps the limits.
const RunRecord* choose(const ChooseConfig& choice, const std::vector<const RunRecord*>& row);

/// Whether a result is one and keeps the limits.
bool keeps_limits(const ChooseConfig& choice, const RunRecord& record);

/// Finds fault with names that no result has, and limits without their unit.
/// @param written the node that `choice` was read from
/// @param paths of the configuration, which can be optimised too
void check_choice(const ChooseConfig& choice, const config::Node& written,
                  const std::vector<std::string>& paths, config::Diagnostics& diagnostics);

}  // namespace orrery
