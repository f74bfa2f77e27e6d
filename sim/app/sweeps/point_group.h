// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/experiment.h"
#include "sim/config/override.h"
#include "sim/results/run_record.h"

namespace orrery {

/// What a point has set, in the order in which it is set; the assignments are those of the sweep.
using PointSettings = std::vector<const config::Assignment*>;

/// Points that set the same keys and differ only in numbers, flags and enumerators: each is one
/// loaded experiment, the base, with leaves of its completed configuration replaced. So a point is
/// known without loading it.
class PointGroup {
 public:
  /// Paths among those of the settings whose values can be replaced in an experiment that was
  /// loaded with them. All others (names, files, lists, whole structs) need loading.
  static std::vector<std::string> replaceable(const LoadedExperiment& base,
                                              const PointSettings& settings);

  /// @param base a point of the group, without contradiction
  PointGroup(LoadedExperiment base, std::vector<std::string> replaceable);

  bool replaces(const std::string& path) const;
  /// Whether a setting is known; each is to be added before it is used.
  bool knows(const config::Assignment& setting) const { return values_.count(&setting) > 0; }
  /// @throws UnitError for no such value
  void add(const config::Assignment& setting);

  /// The same as that of the point loaded the long way.
  std::string identity(const PointSettings& settings) const;
  const std::shared_ptr<const Configuration>& configuration() const { return configuration_; }
  const std::string& kind() const { return base_.experiment->kind; }
  std::vector<Variation> varied(const PointSettings& settings) const;

  /// The point, ready to be simulated; it has no `node`. None where that takes loading it: its
  /// machine is another one, or something is wrong with it. Serves one thread.
  std::optional<LoadedExperiment> load(const PointSettings& settings) const;

 private:
  struct Value {
    std::size_t path = 0;  ///< index of the path in paths_
    Variation variation;
    std::string text;  ///< text of the value in what the identity is made of
  };

  /// The value for each path, the last one that the settings have.
  std::vector<const Value*> values_of(const PointSettings& settings) const;
  void make_template();

  LoadedExperiment base_;
  std::vector<std::string> paths_;
  std::shared_ptr<const Configuration> configuration_;
  std::map<const config::Assignment*, Value> values_;
  std::vector<std::string> texts_;   ///< pieces of the identity's text around the values in places_
  std::vector<std::size_t> places_;  ///< indices in paths_, in the order of the identity's text
  bool same_machine_ = true;
  mutable config::Node filled_;   ///< node of the last point, without its system
  mutable config::Node written_;  ///< node of the last point, its system included
};

}  // namespace orrery
