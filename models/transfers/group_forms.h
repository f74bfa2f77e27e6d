// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "models/topologies/fabric.h"
#include "sim/graph/transfer.h"

namespace orrery {

/// @throws std::logic_error for a transfer without groups, or with a group of a wrong size;
///         config::ConfigError for ranks that the machine, which has `ranks`, has not, or that a
///         group names twice.
void check_groups(const Transfer& transfer, int ranks);

/// The groups of a transfer by their form. Groups at the same places of systems that are alike do
/// the same on links of their own: a tensor parallel step on 100,000 nodes has as many groups, and
/// one form. A group that spans systems is the only one of its form, since routes between systems
/// depend on which they are.
class GroupForms {
 public:
  /// @param systems_alike no link of them differs; else every group has a form of its own
  GroupForms(const Transfer& transfer, const RankLayout& layout, bool systems_alike);

  struct Form {
    std::size_t first = 0;  ///< first of the groups of the form
    std::size_t groups = 0;
  };
  const std::vector<Form>& forms() const { return forms_; }
  struct Image {
    std::size_t form = 0;
    int behind = 0;  ///< ranks between the first group of the form and this one
  };
  /// The images, by group.
  const std::vector<Image>& images() const { return images_; }

  /// Groups that take as long as all: those of one system of each kind, systems being of one kind
  /// where the same forms lie in them. In rising order; empty where a group spans systems.
  std::vector<std::size_t> sample(const Transfer& transfer, const RankLayout& layout) const;

 private:
  bool inside_ = true;  ///< every group lies in one system
  std::vector<Form> forms_;
  std::vector<Image> images_;
};

}  // namespace orrery
