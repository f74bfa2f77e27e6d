// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/diagnostics.h"
#include "sim/config/node.h"

namespace orrery {

struct AxisKey {
  std::string path;
  config::Origin origin;
};

/// The keys of a map.
std::vector<AxisKey> keys_of(const config::Node& map);

/// One dimension of a plan: steps, each of which sets the same keys. Values are made when they are
/// asked for where there may be millions.
class Axis {
 public:
  explicit Axis(std::vector<AxisKey> keys) : keys_(std::move(keys)) {}
  virtual ~Axis() = default;
  Axis(const Axis&) = delete;
  Axis& operator=(const Axis&) = delete;

  const std::vector<AxisKey>& keys() const { return keys_; }
  virtual std::uint64_t size() const = 0;
  /// The value of a key in a step. Serves one thread.
  virtual config::Node value(std::uint64_t step, std::size_t key) const = 0;
  /// Whether values are drawn: nobody wrote them one by one.
  virtual bool is_drawn() const { return false; }
  /// The smallest and largest value that may be drawn for a key; empty: values are no such numbers.
  virtual std::vector<config::Node> ends(std::size_t /*key*/) const { return {}; }

 private:
  std::vector<AxisKey> keys_;
};

/// Values that are written, or few.
class ListedAxis final : public Axis {
 public:
  /// @param steps with a value for each key
  ListedAxis(std::vector<AxisKey> keys, std::vector<std::vector<config::Node>> steps)
      : Axis(std::move(keys)), steps_(std::move(steps)) {}
  std::uint64_t size() const override { return steps_.size(); }
  config::Node value(std::uint64_t step, std::size_t key) const override {
    return steps_[static_cast<std::size_t>(step)][key];
  }

 private:
  std::vector<std::vector<config::Node>> steps_;
};

/// Whether the key at a path takes whole numbers only.
using IsInteger = std::function<bool(const std::string& path)>;

class AxisReader {
 public:
  AxisReader(IsInteger is_integer, std::int64_t seed, config::Diagnostics& diagnostics)
      : is_integer_(std::move(is_integer)), seed_(seed), diagnostics_(diagnostics) {}

  using Axes = std::vector<std::shared_ptr<const Axis>>;

  /// Adds an axis for each key of a grid, in the order in which they are written.
  void add_grid(const config::Node& written, const std::map<std::string, AxisConfig>& grid,
                Axes& axes);
  /// Adds an axis for each item of `zip`.
  void add_zip(const config::Node& written,
               const std::vector<std::map<std::string, AxisConfig>>& zip, Axes& axes);
  void add_random(const config::Node& written, const RandomConfig& random, Axes& axes);
  /// The points of a list: an axis for neighbours that set the same keys.
  Axes list(const config::Node& written);

 private:
  std::vector<config::Node> values(const std::string& path, const config::Node& written,
                                   const AxisConfig& axis);
  std::vector<config::Node> range(const config::Node& written, const RangeConfig& range);
  std::vector<config::Node> logrange(const std::string& path, const config::Node& written,
                                     const LogRangeConfig& range);
  std::vector<config::Node> column(const config::Node& written, const AxisConfig& axis);
  std::shared_ptr<const Axis> table(const config::Node& csv);
  void error(const config::Node& node, std::string message, std::string suggestion = {});

  IsInteger is_integer_;
  std::int64_t seed_;
  config::Diagnostics& diagnostics_;
};

}  // namespace orrery
