// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/app/experiments/cheap_figures.h"
#include "sim/app/sweeps/plan/point_group.h"

namespace orrery {

/// An experiment of a group into which the values of one point after the other are written, to be
/// asked for figures: nothing is read, completed or checked again. Serves one thread.
class Probe {
 public:
  /// @param group outlives it
  explicit Probe(const PointGroup& group);

  /// A figure of the experiment with these values; none where a value cannot be written so, because
  /// others follow from it. @throws config::KeyError where the plan cannot be
  std::optional<double> figure(const CheapFigure& figure, const PointGroup::Values& values);
  /// Whether these values can stand together, as far as that is told without loading the point:
  /// relations of the structs that have them, and orrery::can_be(). Yes, where nothing tells.
  bool can_be(const PointGroup::Values& values);

 private:
  bool take(const PointGroup::Values& values);
  const StepModel& model();

  struct Member {
    void* address = nullptr;  ///< null: not to be written
    const config::Type* type = nullptr;
  };

  const PointGroup& group_;
  std::shared_ptr<void> object_;
  Experiment* experiment_ = nullptr;
  std::vector<Member> members_;  ///< members at the paths of the group
  /// Structs above these members, each once.
  std::vector<std::pair<const config::Record*, void*>> above_;
  bool same_model_ = true;  ///< no value is one of the model
  StepModel model_;
};

}  // namespace orrery
