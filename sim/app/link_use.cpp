// SPDX-License-Identifier: Apache-2.0
#include "sim/app/link_use.h"

#include <algorithm>
#include <map>
#include <string>

#include "sim/results/table.h"
#include "sim/units/time.h"

namespace orrery {

MachineLinkUse link_use(const Experiment& experiment, const Topology& topology,
                        const ReplayResult& replay) {
  MachineLinkUse result;
  const double time = to_seconds(replay.end).base();
  std::map<std::string, LinkUse> classes;
  for (std::size_t i = 0; i < topology.bundles().size(); ++i) {
    const Bundle& bundle = topology.bundles()[i];
    const double share = time > 0 ? replay.link_busy_s[i] / time : 0;
    const auto count = static_cast<std::uint64_t>(bundle.links);
    LinkUse& all = classes.try_emplace(link_class(bundle.name), LinkUse{{}, 0}).first->second;
    all.links += count;
    all.bytes += replay.link_payload[i];
    all.busy_share += share * bundle.links;  // divided by all links below
    all.peak_share = std::max(all.peak_share, share);
    if (experiment.record == Recorded::kLinks && replay.link_payload[i] > 0)
      result.links.push_back({bundle.name, count, replay.link_payload[i], share, share});
  }
  for (auto& [name, use] : classes) {
    use.name = name;
    if (use.links > 0) use.busy_share /= static_cast<double>(use.links);
    result.classes.push_back(std::move(use));
  }
  return result;
}

void add_link_use(const MachineLinkUse& use, RunRecord& record) {
  record.link_classes = use.classes;
  record.links = use.links;
}

void print_link_use(const RunRecord& record, std::ostream& out) {
  if (record.link_classes.empty()) return;
  Table table({{"links"},
               {"number", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"busy", Table::Align::kRight},
               {"busiest", Table::Align::kRight}});
  for (const LinkUse& use : record.link_classes) {
    table.add_row({use.name, std::to_string(use.links), format_si(use.bytes, "B"),
                   format_percent(use.busy_share), format_percent(use.peak_share)});
  }
  out << "\n";
  table.print(out);
}

}  // namespace orrery
