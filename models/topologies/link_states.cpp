// SPDX-License-Identifier: Apache-2.0
#include "models/topologies/link_states.h"

#include <fnmatch.h>

#include <boost/range/iterator_range.hpp>
#include <set>

#include "sim/graph/topology_boost.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// A glob in which `*` stands for anything, path separators included.
bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

}  // namespace

double LinkStates::State::left() const {
  double others = 1, lost = 0;  // of the capacity of the bundle
  for (const auto& [link, part] : parts) {
    others -= part.weight;
    lost += part.weight * (1 - part.share);
  }
  lost += others * (1 - share);
  constexpr double kNearlyAll = 1e-12;  // must leave nothing of a bundle whose links are all down
  return lost > 1 - kNearlyAll ? 0 : 1 - lost;
}

bool LinkStates::set_bundles(const std::string& pattern, double share) {
  bool found = false;
  for (BundleId bundle = 0; bundle < topology_.bundles().size(); ++bundle) {
    const std::string name = topology_.bundle_name(bundle);
    if (!matches(pattern, name) && link_class(name) != pattern) continue;
    found = true;
    states_[bundle] = {share, {}};
  }
  return found;
}

bool LinkStates::set_physical(const std::string& pattern, double share) {
  if (!drawn_) {
    drawn_ = topology_;
    fabric_.draw(*drawn_);
  }
  bool found = false;
  std::size_t number = 0;
  for (const auto link : boost::make_iterator_range(edges(drawn_->graph()))) {
    const Topology::Link& drawn = drawn_->graph()[link];
    if (matches(pattern, link_name(*drawn_, link))) {
      found = true;
      const double weight = drawn.capacity / topology_.bundles()[drawn.bundle].capacity;
      states_[drawn.bundle].parts[number] = {weight, share};
    }
    ++number;
  }
  return found;
}

std::vector<LinkFault> LinkStates::faults() const {
  std::vector<LinkFault> faults;
  for (const auto& [bundle, state] : states_) {
    const double left = state.left();
    if (left != 1) faults.push_back({bundle, left});
  }
  return faults;
}

std::vector<std::string> LinkStates::classes() const {
  std::set<std::string> classes;
  for (BundleId bundle = 0; bundle < topology_.bundles().size(); ++bundle)
    classes.insert(link_class(topology_.bundle_name(bundle)));
  return {classes.begin(), classes.end()};
}

std::string LinkStates::nearest(const std::string& pattern) const {
  std::vector<std::string> names = classes();
  for (BundleId bundle = 0; bundle < topology_.bundles().size(); ++bundle)
    names.push_back(topology_.bundle_name(bundle));
  return nearest_name(pattern, names);
}

}  // namespace orrery
