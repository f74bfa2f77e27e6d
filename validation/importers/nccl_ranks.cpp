// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/nccl_ranks.h"

#include <algorithm>

#include "validation/importers/numbers.h"

namespace orrery {
namespace {

/// Whether these are 0 to n - 1.
bool is_whole(const std::set<std::int64_t>& ranks) {
  return !ranks.empty() && *ranks.begin() == 0 &&
         *ranks.rbegin() == static_cast<std::int64_t>(ranks.size()) - 1;
}

/// The words after the name, up to its value.
const LogWord* value_of(const LogWord* words, std::size_t count, std::string_view name) {
  const LogWord* end = words + count;
  const LogWord* found =
      std::find_if(words, end, [&](const LogWord& word) { return word.text == name; });
  return end - found > 1 ? found + 1 : nullptr;
}

}  // namespace

std::string NcclRanks::add(const LogWord* words, std::size_t count) {
  const auto rank = count > 1 ? parse_count(words[1].text) : std::nullopt;
  if (!rank) return {};
  const LogWord* group_word = value_of(words, count, "Group");
  const auto said = group_word == nullptr ? std::nullopt : parse_count(group_word->text);
  const std::int64_t group = said.value_or(0);
  if (!members_.emplace(group, *rank).second) {
    return "rank " + std::to_string(*rank) +
           " is there twice: processes that ran apart (built without MPI=1?), not one collective";
  }
  groups_[group].ranks.insert(*rank);
  if (const LogWord* host = value_of(words, count, "on")) groups_[group].hosts.emplace(host->text);
  const LogWord* device = value_of(words, count, "device");
  std::string name;
  for (; device != nullptr && ++device < words + count;) {
    if (device->text.starts_with('[')) continue;
    name += name.empty() ? "" : " ";
    name += device->text;
  }
  if (device_.empty()) device_ = name;
  mixed_ = mixed_ || name != device_;
  return {};
}

void NcclRanks::add_apart(const NcclRanks& other) {
  const bool is_other_run = std::any_of(
      other.members_.begin(), other.members_.end(),
      [this](const auto& member) { return member.second == 0 || members_.count(member) > 0; });
  if (is_other_run) return;
  members_.insert(other.members_.begin(), other.members_.end());
  for (const auto& [number, group] : other.groups_) {
    groups_[number].ranks.insert(group.ranks.begin(), group.ranks.end());
    groups_[number].hosts.insert(group.hosts.begin(), group.hosts.end());
  }
}

std::string NcclRanks::gap() const {
  std::set<std::int64_t> all;
  for (const auto& [group, rank] : members_) all.insert(rank);
  if (all.size() < members_.size()) return "groups share some ranks";
  std::int64_t next = 0;
  for (const std::int64_t rank : all) {
    if (rank != next++) {
      return rank == next ? "rank " + std::to_string(next - 1) + " is missing"
                          : "ranks " + std::to_string(next - 1) + " to " +
                                std::to_string(rank - 1) + " are missing";
    }
  }
  return {};
}

NcclRanks::Communicator NcclRanks::communicator(std::int64_t said, std::string& fault) const {
  // Ranks are numbered over all groups, or in each one.
  const std::string missing = gap();
  const bool apart = std::all_of(groups_.begin(), groups_.end(),
                                 [](const auto& group) { return is_whole(group.second.ranks); });
  Communicator found{
      said, 0, static_cast<std::int64_t>(std::max<std::size_t>(groups_.size(), 1)), {}};
  if (!members_.empty() && (apart || missing.empty())) {
    const Group& first = groups_.begin()->second;
    const bool equal = std::all_of(groups_.begin(), groups_.end(), [&](const auto& group) {
      return group.second.ranks.size() == first.ranks.size();
    });
    const bool spread = std::all_of(groups_.begin(), groups_.end(), [&](const auto& group) {
      return group.second.hosts.size() == first.hosts.size();
    });
    const auto listed = static_cast<std::int64_t>(first.ranks.size());
    if (!equal) {
      fault = "the groups have different numbers of ranks, so that a time has none";
    } else if (said != 0 && said < listed) {
      fault = "the list has " + std::to_string(listed) + " ranks, more than --ranks says";
    }
    found.ranks = std::max(said, listed);
    found.listed = listed;
    if (spread && !first.hosts.empty() && found.ranks == listed) {
      found.nodes = static_cast<std::int64_t>(first.hosts.size());
    }
    return found;
  }
  if (said == 0) {
    fault = members_.empty()
                ? "there is no line '# Rank ...' before this table, so that the "
                  "number of ranks is unknown; say --ranks N"
                : "the list of ranks before this table is cut (" + missing + "); say --ranks N";
  } else if (groups_.size() == 1 && !members_.empty() && members_.rbegin()->second >= said) {
    fault = "the list has rank " + std::to_string(members_.rbegin()->second) + ", and --ranks " +
            std::to_string(said) + " means 0 to " + std::to_string(said - 1);
  }
  return found;
}

}  // namespace orrery
