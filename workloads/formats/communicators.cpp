// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/communicators.h"

namespace orrery {

std::uint32_t Communicators::add(const std::vector<int>& ranks) {
  const auto [group, is_new] =
      by_ranks_.try_emplace(ranks, static_cast<std::uint32_t>(groups_.size()));
  if (is_new) groups_.push_back(ranks);
  return group->second;
}

void Communicators::name(std::string_view name, const std::vector<int>& ranks) {
  by_name_.insert_or_assign(std::string(name), add(ranks));
}

std::optional<std::uint32_t> Communicators::find(std::string_view name) const {
  const auto known = by_name_.find(name);
  if (known == by_name_.end()) return std::nullopt;
  return known->second;
}

}  // namespace orrery
