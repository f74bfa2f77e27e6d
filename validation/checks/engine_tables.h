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
#include "workloads/llm/llm_config.h"

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
    /// What tokens of all ranks take to go to the experts and back, in a layer; empty: no time.
    std::function<Seconds(std::int64_t tokens)> exchange;
  };

  /// @param folder with meta.yaml and, in tp<n>, the tables of one rank. The profile's own weight
  /// of the longest context beside the mean of decodes is taken (skew_fit: alpha_default)
  /// @throws config::ConfigError for tables that are not there or cannot be read
  EngineTables(const std::string& folder, const LlmConfig& model, Plan plan);

  /// Tables tell no energy.
  IterationPrice price(const BatchShape& shape) override;

 private:
  double dense(std::int64_t tokens) const;
  double attention(double tokens, double earlier, double sequences, double context) const;
  double attention(const BatchShape& shape) const;
  double experts(std::int64_t tokens) const;

  Plan plan_;
  double spread_ = 0;  ///< weight of the longest context beside the mean of decodes
  double layers_ = 0, expert_layers_ = 0, experts_ = 0, routed_ = 0;
  std::map<std::string, GridTable> dense_, sequences_;
  GridTable decodes_, chunks_, mixed_, moe_;
};

}  // namespace orrery
