// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "models/topologies/tree_shape.h"

namespace orrery {

/// Names of the switches of a tree.
class TreeNames {
 public:
  /// `shape` must outlive it.
  explicit TreeNames(const TreeShape& shape) : shape_(shape) {}

  /// A name such as "group2/leaf0".
  std::string leaf(int leaf) const {
    return "group" + std::to_string(leaf / shape_.rails) + "/leaf" +
           std::to_string(leaf % shape_.rails);
  }
  /// "plane3/", or nothing where there is one.
  std::string plane(int plane) const {
    return shape_.planes == 1 ? "" : "plane" + std::to_string(plane) + "/";
  }
  /// "pod1/plane3/", without what there is one of.
  std::string pod(int pod, int plane_of_pod) const {
    return (shape_.pods == 1 ? "" : "pod" + std::to_string(pod) + "/") + plane(plane_of_pod);
  }
  /// A name such as "pod1/plane3/spine5".
  std::string spine(int pod_of_spine, int plane_of_spine, int spine) const {
    return pod(pod_of_spine, plane_of_spine) + "spine" + std::to_string(spine);
  }

 private:
  const TreeShape& shape_;
};

}  // namespace orrery
