// SPDX-License-Identifier: Apache-2.0
#include "models/collectives/channels.h"

#include <algorithm>
#include <numeric>

namespace orrery {

Channels::Channels(const Collective& collective)
    : members_(collective.group.size()), rings_(collective.rings) {
  const std::span<const int> group = collective.group;
  std::iota(members_.begin(), members_.end(), 0);
  const auto rank = [group](int member) { return group[static_cast<std::size_t>(member)]; };
  if (!std::is_sorted(group.begin(), group.end())) {
    std::sort(members_.begin(), members_.end(), [&](int a, int b) { return rank(a) < rank(b); });
  }
  int last_system = -1;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const int system = collective.layout.system(rank(members_[i]));
    if (system != last_system) first_.push_back(i);
    last_system = system;
  }
  first_.push_back(members_.size());
  if (systems() == 1) {
    if (!rings_.empty()) count_ = static_cast<int>(rings_.front().size());
    return;
  }
  count_ = part_size(0);
  for (int system = 1; system < systems(); ++system) count_ = std::min(count_, part_size(system));
}

std::span<const int> Channels::part(int system) const {
  const auto index = static_cast<std::size_t>(system);
  return std::span(members_).subspan(first_[index], first_[index + 1] - first_[index]);
}

int Channels::member(int system, int channel, int index) const {
  const std::span<const int> members = part(system);
  const auto size = static_cast<int>(members.size());
  const int entry = size * channel / count_;
  if (rings_.empty()) return members[static_cast<std::size_t>((entry + index) % size)];
  const RingOrders& rings = rings_[static_cast<std::size_t>(system)];
  const std::vector<int>& ring = rings[static_cast<std::size_t>(channel) % rings.size()];
  const auto first = std::find(ring.begin(), ring.end(), entry) - ring.begin();
  const auto place =
      (static_cast<std::size_t>(first) + static_cast<std::size_t>(index)) % ring.size();
  return members[static_cast<std::size_t>(ring[place])];
}

int Channels::largest_part() const {
  int largest = 0;
  for (int system = 0; system < systems(); ++system) largest = std::max(largest, part_size(system));
  return largest;
}

RailGroups::RailGroups(const Collective& collective, const Channels& channels)
    : systems_(static_cast<std::size_t>(channels.systems())),
      rails_(static_cast<std::size_t>(channels.part_size(0))),
      by_rail_(systems_ * rails_) {
  by_system_.reserve(systems_ * rails_);
  for (std::size_t system = 0; system < systems_; ++system) {
    const std::span<const int> members = channels.part(static_cast<int>(system));
    for (std::size_t rail = 0; rail < rails_; ++rail) {
      const int rank = collective.rank(members[rail]);
      by_system_.push_back(rank);
      by_rail_[rail * systems_ + system] = rank;
    }
  }
}

}  // namespace orrery
