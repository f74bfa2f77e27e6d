// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/sweeps/plan/plan_cursor.h"
#include "sim/app/sweeps/run/run_sweep.h"
#include "sim/config/schema.h"

namespace orrery {

/// A point that a program tells of: its parameters, and what was found of it elsewhere. With
/// neither objectives nor a reason it is to be simulated here.
struct ToldPoint {
  std::string point;      ///< identity, checked against the parameters; empty: not said
  std::string case_name;  ///< empty: the first case
  std::string variant;    ///< empty: the base of the case
  std::map<std::string, config::Node> parameters;
  std::map<std::string, double> objectives;  ///< metrics in SI base units
  std::string infeasible;                    ///< why it has no objectives
  static const config::Schema<ToldPoint>& schema();

  bool is_result() const { return !objectives.empty() || !infeasible.empty(); }
};

/// Points on and between those of a sweep, by their parameters: its cases, variants and conditions
/// hold for them, its axes do not.
class ToldPoints {
 public:
  /// @param sweep outlives it, as the store does
  /// @param name what messages call the text that points come from
  ToldPoints(const Sweep& sweep, ResultStore& store, std::string name);

  /// Takes a line: a point or a list of them, which are simulated side by side. What the store has
  /// is read, what was found elsewhere is saved. @return for each point, in order, {"point":
  /// identity, "status": "ok", "objectives": {...}, "violation": 0, "metrics": {...}}, or with
  /// another status ("infeasible", "failed", "excluded") and its reason
  /// @throws config::ConfigError naming line and column; then nothing was done
  std::vector<nlohmann::ordered_json> take(const std::string& line, const SweepOptions& options);

 private:
  struct Placed;

  std::vector<Placed> read(const std::string& line, config::Diagnostics& diagnostics) const;
  std::optional<SweepRow> row_of(const Placed& point, config::Diagnostics& diagnostics) const;
  Sweep plan_of(std::vector<Placed>& points, config::Diagnostics& diagnostics) const;
  void add_blocks(const std::vector<Placed*>& members, const SweepRow& row, Sweep& plan) const;
  void save(const Placed& point, PlanCursor& cursor);
  nlohmann::ordered_json answer_of(const std::string& identity, const RunRecord& record,
                                   std::uint32_t case_index) const;

  const Sweep& sweep_;
  ResultStore& store_;
  std::string name_;
  std::size_t line_ = 0;  ///< lines taken
};

}  // namespace orrery
