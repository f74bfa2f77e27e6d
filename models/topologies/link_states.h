// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "models/topologies/fabric.h"

namespace orrery {

/// What is left of each link of a machine, set by the names of links.
///
/// A pattern is the name of a bundle, a class of links (link_class()), or a glob (`*`, `?`) of
/// names. One that names no bundle is looked for among the physical links: "*->system0/nvswitch3"
/// takes from each bundle the link that goes there. What is left of a bundle is then used in full,
/// whichever of its links are gone.
class LinkStates {
 public:
  /// @param topology healthy; both have to live on
  LinkStates(const Topology& topology, const Fabric& fabric)
      : topology_(topology), fabric_(fabric) {}

  /// From now on the links that the pattern names have this share of their healthy capacity.
  /// @return false if it names none
  bool set(const std::string& pattern, double share) {
    return set_bundles(pattern, share) || set_physical(pattern, share);
  }
  /// Bundles that are not whole, in ascending order.
  std::vector<LinkFault> faults() const;

  /// Classes of all links, sorted.
  std::vector<std::string> classes() const;
  /// The bundle or class whose name is nearest to the pattern; empty: none is near.
  std::string nearest(const std::string& pattern) const;

 private:
  /// Some of the links of a bundle.
  struct Part {
    double weight = 0;  ///< share of the bundle's capacity that the part is when whole
    double share = 1;   ///< share of the part's capacity that is left
  };
  struct State {
    double share = 1;                   ///< share left of the links that are not in `parts`
    std::map<std::size_t, Part> parts;  ///< parts by number of the physical link
    double left() const;
  };

  bool set_bundles(const std::string& pattern, double share);
  bool set_physical(const std::string& pattern, double share);

  const Topology& topology_;
  const Fabric& fabric_;
  std::optional<Topology> drawn_;  ///< topology with physical links; once they are needed
  std::map<BundleId, State> states_;
};

}  // namespace orrery
