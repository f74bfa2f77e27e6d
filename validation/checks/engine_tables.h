// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "sim/serving/iteration.h"
#include "sim/units/units.h"
#include "workloads/models/llm_config.h"

namespace orrery {

/// Measured times on a grid of figures, lines between them; values outside count as the nearest.
/// Corners that were not measured are left out, and the others weigh the more.
class GridTable {
 public:
  static constexpr std::size_t kAxes = 4;
  using Point = std::array<double, kAxes>;

  void add(const Point& at, double value);
  bool empty() const { return cells_.empty(); }
  double at(const Point& point) const;
  /// The ends of an axis, of a table that is not empty.
  double first(std::size_t axis) const { return axes_[axis].front(); }
  double last(std::size_t axis) const { return axes_[axis].back(); }

 private:
  struct Ends {
    double low = 0, high = 0, weight = 0;  ///< weight of the high end
  };
  Ends ends(std::size_t axis, double value) const;

  std::map<Point, double> cells_;
  std::array<std::vector<double>, kAxes> axes_;  ///< nodes, ascending
};

/// Iterations priced by an engine's own operator tables, as LLMServingSim's profiler writes them
/// for a rank (dense.csv, attention.csv, per_sequence.csv, moe.csv, plain or gzip; microseconds):
/// what an engine's kernels take beside what Orrery's models say of them.
class EngineTables final : public IterationPricer {
 public:
  struct Plan {
    int tp = 1;     ///< the rank is one of so many
    int ranks = 1;  ///< data parallel ranks, over which experts are spread
    int units = 0;  ///< multiprocessors of the device
    /// What tokens of all ranks take to go to the experts and back, in a layer; empty: no time.
    std::function<Seconds(std::int64_t tokens)> exchange;
  };

  /// @param folder with the tables of one rank in tp<n>
  /// @throws config::ConfigError for tables that are not there or cannot be read
  EngineTables(const std::string& folder, const LlmConfig& model, Plan plan);

  /// Tables tell no energy.
  IterationPrice price(const BatchShape& shape) override;

 private:
  /// Times on a grid of powers of two, and on a finer one, which does not reach as far.
  struct Grids {
    GridTable wide, fine;

    double at(const GridTable::Point& point) const;
  };

  double dense(std::int64_t tokens) const;
  void read_attention(const std::string& path);
  double decodes(double sequences, double mean, double longest) const;
  double attention(const BatchShape& shape) const;
  double experts(std::int64_t tokens) const;

  Plan plan_;
  double layers_ = 0, expert_layers_ = 0, experts_ = 0, routed_ = 0, kv_heads_ = 0;
  std::map<std::string, GridTable> dense_, sequences_;
  GridTable decodes_, moe_;  ///< attention of decodes alone; experts
  Grids chunks_, mixed_;     ///< attention of a chunk alone, and beside decodes
};

}  // namespace orrery
