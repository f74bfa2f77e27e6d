// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/group_forms.h"

#include <algorithm>
#include <map>
#include <stdexcept>
#include <string>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

/// The places of a group in its system; false where it spans several.
bool find_places(const std::vector<int>& group, const RankLayout& layout,
                 std::vector<int>& places) {
  const int first = layout.system(group.front()) * layout.ranks_per_system;
  places.clear();
  for (const int rank : group) {
    if (rank < first || rank >= first + layout.ranks_per_system) return false;
    places.push_back(rank - first);
  }
  return true;
}

}  // namespace

void check_groups(const Transfer& transfer, int ranks) {
  if (transfer.groups.empty()) {
    throw std::logic_error("transfer " + transfer.name + " has no groups");
  }
  std::vector<int> sorted;
  for (const std::vector<int>& group : transfer.groups) {
    const std::size_t ends = transfer.host ? 1 : 2;
    if (group.empty() || (transfer.kind == TransferKind::kSendReceive && group.size() != ends)) {
      throw std::logic_error("transfer " + transfer.name + " has a group of wrong size");
    }
    sorted = group;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0 || sorted.back() >= ranks) {
      throw config::ConfigError(
          "transfer " + transfer.name + " names rank " +
          std::to_string(sorted.front() < 0 ? sorted.front() : sorted.back()) +
          "; the machine has " + std::to_string(ranks) + " ranks");
    }
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      throw config::ConfigError("transfer " + transfer.name + " names rank " +
                                std::to_string(*twice) + " twice in one group");
    }
  }
}

GroupForms::GroupForms(const Transfer& transfer, const RankLayout& layout, bool systems_alike) {
  std::map<std::vector<int>, std::size_t> known;  // forms by places
  std::vector<int> places;
  images_.reserve(transfer.groups.size());
  for (std::size_t i = 0; i < transfer.groups.size(); ++i) {
    const std::vector<int>& group = transfer.groups[i];
    std::size_t form = forms_.size();
    if (systems_alike && find_places(group, layout, places))
      form = known.try_emplace(places, form).first->second;
    if (form == forms_.size()) forms_.push_back({i, 0});
    ++forms_[form].groups;
    images_.push_back({form, group.front() - transfer.groups[forms_[form].first].front()});
  }
}

}  // namespace orrery
