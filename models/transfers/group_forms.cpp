// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/group_forms.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
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
    if (systems_alike && find_places(group, layout, places)) {
      form = known.try_emplace(places, form).first->second;
    } else {
      inside_ = false;
    }
    if (form == forms_.size()) forms_.push_back({i, 0});
    ++forms_[form].groups;
    images_.push_back({form, group.front() - transfer.groups[forms_[form].first].front()});
  }
}

std::vector<std::size_t> GroupForms::sample(const Transfer& transfer,
                                            const RankLayout& layout) const {
  if (!inside_) return {};
  const auto system = [&](std::size_t group) {
    return layout.system(transfer.groups[group].front());
  };
  std::vector<std::size_t> by_system(images_.size());
  std::iota(by_system.begin(), by_system.end(), 0);
  std::stable_sort(by_system.begin(), by_system.end(),
                   [&](std::size_t a, std::size_t b) { return system(a) < system(b); });
  std::set<std::vector<std::size_t>> kinds;  // forms of a system, in the order of its groups
  std::vector<std::size_t> sample, forms;
  for (auto first = by_system.begin(); first != by_system.end();) {
    const auto end = std::find_if(
        first, by_system.end(), [&](std::size_t group) { return system(group) != system(*first); });
    forms.clear();
    for (auto group = first; group != end; ++group) forms.push_back(images_[*group].form);
    if (kinds.insert(forms).second) sample.insert(sample.end(), first, end);
    first = end;
  }
  std::sort(sample.begin(), sample.end());
  return sample;
}

}  // namespace orrery
