// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/results/run_record.h"
#include "sim/units/sha256.h"

namespace orrery {

/// A value that a point has in the place of that of its base.
struct PointValue {
  std::size_t path = 0;  ///< index of its path in PointGroup::paths()
  Variation variation;
  std::string text;  ///< text of the value in what the identity is made of
  config::Scalar scalar;
};

/// Points that set the same keys and differ only in numbers, flags and enumerators: each is one
/// loaded experiment, the base, with leaves of its completed configuration replaced. So a point is
/// known without loading it.
class PointGroup {
 public:
  /// Values for each of paths().
  using Values = std::vector<const PointValue*>;

  /// Those of `paths` whose values can be replaced in an experiment that was loaded with them, and
  /// with `settings`, sorted. All others (names, files, lists, whole structs) need loading.
  static std::vector<std::string> replaceable(const LoadedExperiment& base,
                                              const std::vector<std::string>& paths,
                                              const SettingList& settings);

  /// @param base a point of the group, without contradiction
  PointGroup(LoadedExperiment base, std::vector<std::string> replaceable);

  const LoadedExperiment& base() const { return base_; }
  const std::vector<std::string>& paths() const { return paths_; }
  /// Index in paths(); none: values at this path are not replaced.
  std::optional<std::size_t> find(const std::string& path) const;
  /// @throws UnitError for no such value
  PointValue value(const config::Assignment& setting) const;

  /// The same as that of the point loaded the long way.
  std::string identity(const Values& values) const;
  const std::shared_ptr<const Configuration>& configuration() const { return configuration_; }
  const std::string& kind() const { return base_.experiment->kind; }
  std::vector<Variation> varied(const Values& values) const;

  /// The point, ready to be simulated; it has no `node`. None where that takes loading it: its
  /// machine is another one, or something is wrong with it. Serves one thread.
  std::optional<LoadedExperiment> load(const SettingList& settings) const;

 private:
  void make_template();

  LoadedExperiment base_;
  std::vector<std::string> paths_;
  std::vector<const config::Type*> types_;  ///< types of the values at paths_
  std::shared_ptr<const Configuration> configuration_;
  std::vector<const Parameter*> of_base_;  ///< what the base has at paths_
  std::vector<std::string> texts_;  ///< pieces of the identity's text around the values in places_
  std::shared_ptr<const Sha256> begun_;  ///< hash of the first of texts_, which all points share
  std::vector<std::size_t> places_;      ///< indices in paths_, in the order of the identity's text
  bool same_machine_ = true;
  mutable config::Node filled_;   ///< node of the last loaded point, without its system
  mutable config::Node written_;  ///< node of the last loaded point, its system included
};

}  // namespace orrery
