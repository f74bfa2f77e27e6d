// SPDX-License-Identifier: Apache-2.0
#include "sim/network/link_classes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

namespace orrery {

LinkLoads normalized_loads(const LinkLoads& loads, std::size_t links) {
  bool normal = true;
  std::uint64_t next = 0;  // the least link that may follow
  for (const LinkLoad& load : loads) {
    if (load.link >= links || !std::isfinite(load.bytes) || load.bytes < 0) {
      throw std::logic_error("a transfer has an unknown link or an impossible load");
    }
    normal = normal && load.bytes > 0 && load.link >= next;
    next = std::uint64_t{load.link} + 1;
  }
  if (normal) return loads;
  std::vector<LinkLoad> sorted;
  for (const LinkLoad& load : loads) {
    if (load.bytes > 0) sorted.push_back(load);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const LinkLoad& a, const LinkLoad& b) { return a.link < b.link; });
  LinkLoads result;
  for (std::size_t i = 0; i < sorted.size();) {
    LinkLoad load = sorted[i];
    for (++i; i < sorted.size() && sorted[i].link == load.link; ++i) load.bytes += sorted[i].bytes;
    result.push_back(load);
  }
  return result;
}

// Classes are split by one transfer after the other: links stay together while each loads them
// alike.
std::vector<std::uint32_t> link_classes(const Costs& costs) {
  std::vector<std::uint32_t> classes(costs.links.size(), kUnloaded);
  std::uint32_t count = 0;
  for (const TransferCost& transfer : costs.transfers) {
    std::map<std::pair<std::uint32_t, double>, std::uint32_t> parts;  // of old class and bytes
    for (const LinkLoad& load : normalized_loads(transfer.loads, costs.links.size())) {
      std::uint32_t& own = classes[load.link];
      const auto [part, added] = parts.try_emplace({own, load.bytes}, count);
      if (added) ++count;
      own = part->second;
    }
  }
  std::vector<std::uint32_t> numbers(count, kUnloaded);
  std::uint32_t next = 0;
  for (std::uint32_t& own : classes) {
    if (own == kUnloaded) continue;
    if (numbers[own] == kUnloaded) numbers[own] = next++;
    own = numbers[own];
  }
  return classes;
}

}  // namespace orrery
