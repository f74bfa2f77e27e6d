// SPDX-License-Identifier: Apache-2.0
#include "sim/app/experiments/core/link_use.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/units/time.h"

namespace orrery {

namespace {

/// Numbers of what ends of links are called, by name: alike where end_class() is.
std::vector<std::uint32_t> end_classes(const NamePool& names) {
  std::map<std::string_view, std::uint32_t> known;
  std::vector<std::uint32_t> classes;
  for (NameId id = 0; id < names.size(); ++id) {
    const auto next = static_cast<std::uint32_t>(known.size());
    classes.push_back(known.try_emplace(end_class(names.at(id)), next).first->second);
  }
  return classes;
}

std::vector<LinkUse> by_name(
    const std::map<std::pair<std::uint32_t, std::uint32_t>, LinkUse>& classes) {
  std::vector<LinkUse> uses;
  for (const auto& [ends, use] : classes) {
    uses.push_back(use);
    if (use.links > 0) uses.back().busy_share /= static_cast<double>(use.links);
  }
  std::ranges::sort(uses, {}, &LinkUse::name);
  return uses;
}

}  // namespace

MachineLinkUse link_use(const Topology& topology, const ReplayResult& replay, Recorded recorded) {
  MachineLinkUse result;
  const double time = to_seconds(replay.end).base();
  const std::vector<std::uint32_t> class_of = end_classes(topology.names());
  std::map<std::pair<std::uint32_t, std::uint32_t>, LinkUse> classes;  // by those of both ends
  for (BundleId i = 0; i < topology.bundles().size(); ++i) {
    const Bundle& bundle = topology.bundles()[i];
    const double share = time > 0 ? replay.link_busy_s[i] / time : 0;
    const auto count = static_cast<std::uint64_t>(bundle.links);
    const Topology::Ends& ends = topology.bundle_ends(i);
    LinkUse& all =
        classes.try_emplace({class_of[ends.from], class_of[ends.to]}, LinkUse{{}, 0}).first->second;
    if (all.name.empty()) all.name = link_class(topology.bundle_name(i));
    all.links += count;
    all.bytes += replay.link_payload[i];
    all.busy_share += share * bundle.links;  // divided by all links at the end
    all.peak_share = std::max(all.peak_share, share);
    if (recorded == Recorded::kLinks && replay.link_payload[i] > 0)
      result.links.push_back(
          {topology.bundle_name(i), count, replay.link_payload[i], share, share});
  }
  result.classes = by_name(classes);
  return result;
}

void add_link_use(const MachineLinkUse& use, RunRecord& record) {
  record.link_classes = use.classes;
  record.links = use.links;
}

std::optional<Table> link_use_table(const RunRecord& record) {
  if (record.link_classes.empty()) return std::nullopt;
  Table table = Table::titled("links | >number | >bytes | >busy | >busiest");
  for (const LinkUse& use : record.link_classes) {
    table.add_row({use.name, std::to_string(use.links), format_si(use.bytes, "B"),
                   format_percent(use.busy_share), format_percent(use.peak_share)});
  }
  return table;
}

}  // namespace orrery
