// SPDX-License-Identifier: Apache-2.0
#include "sim/network/link_classes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

namespace orrery {

std::vector<LinkLoad> normalized_loads(std::vector<LinkLoad> loads, std::size_t links) {
  const auto by_link = [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; };
  if (!std::is_sorted(loads.begin(), loads.end(), by_link)) {
    std::stable_sort(loads.begin(), loads.end(), by_link);
  }
  std::vector<LinkLoad> result;
  for (const LinkLoad& load : loads) {
    if (load.link >= links || !std::isfinite(load.bytes) || load.bytes < 0) {
      throw std::logic_error("a transfer has an unknown link or an impossible load");
    }
    if (load.bytes == 0) {
      continue;
    }
    if (!result.empty() && result.back().link == load.link) {
      result.back().bytes += load.bytes;
    } else {
      result.push_back(load);
    }
  }
  return result;
}

std::vector<std::uint32_t> link_classes(const Costs& costs) {
  using Loads = std::vector<std::pair<std::uint32_t, double>>;  // transfer, bytes
  std::vector<Loads> by_link(costs.links.size());
  for (std::uint32_t t = 0; t < costs.transfers.size(); ++t) {
    for (const LinkLoad& load : normalized_loads(costs.transfers[t].loads, costs.links.size())) {
      by_link[load.link].emplace_back(t, load.bytes);
    }
  }
  std::vector<std::uint32_t> classes(costs.links.size(), kUnloaded);
  std::map<Loads, std::uint32_t> known;
  for (std::size_t link = 0; link < by_link.size(); ++link) {
    if (!by_link[link].empty()) {
      const auto next = static_cast<std::uint32_t>(known.size());
      classes[link] = known.try_emplace(std::move(by_link[link]), next).first->second;
    }
  }
  return classes;
}

}  // namespace orrery
