// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/channels.h"

#include <algorithm>
#include <cstddef>

namespace orrery {

Channels::Channels(const Collective& collective) {
  std::vector<int> members(collective.group.begin(), collective.group.end());
  std::sort(members.begin(), members.end());
  int last_system = -1;
  for (const int rank : members) {
    const int system = collective.layout.system(rank);
    if (system != last_system) parts_.emplace_back();
    last_system = system;
    parts_.back().push_back(rank);
  }
  if (parts_.size() == 1) return;
  const auto smallest =
      std::min_element(parts_.begin(), parts_.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  count_ = static_cast<int>(smallest->size());
}

std::vector<int> Channels::visit(int system, int channel) const {
  std::vector<int> order = parts_.at(static_cast<std::size_t>(system));
  const auto entry = static_cast<std::ptrdiff_t>(order.size()) * channel / count_;
  std::rotate(order.begin(), order.begin() + entry, order.end());
  return order;
}

int Channels::largest_part() const {
  std::size_t largest = 0;
  for (const auto& part : parts_) largest = std::max(largest, part.size());
  return static_cast<int>(largest);
}

}  // namespace orrery
