// SPDX-License-Identifier: Apache-2.0
#include "sim/app/pricing/machine_network.h"

#include <algorithm>
#include <set>

#include "models/topologies/link_states.h"
#include "sim/config/diagnostics.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

std::vector<FaultConfig> by_time(std::vector<FaultConfig> faults) {
  std::ranges::stable_sort(faults, {}, &FaultConfig::at);
  return faults;
}

std::set<std::uint32_t> loaded_links(const Costs& costs) {
  std::set<std::uint32_t> links;
  for (const TransferCost& transfer : costs.transfers) {
    for (const LinkLoad& load : transfer.loads) links.insert(load.link);
  }
  return links;
}

bool same_loads(const LinkLoads& a, const LinkLoads& b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](const LinkLoad& x, const LinkLoad& y) { return x.link == y.link && x.bytes == y.bytes; });
}

/// Links that are down at the start go down at time 0: a transfer that crosses one then stands
/// still and says why.
void add_dead_links(const FlowModel& start, bool links_change, Costs& costs) {
  std::set<std::uint32_t> dead;
  for (std::uint32_t link = 0; link < costs.links.size(); ++link) {
    if (costs.links[link].base() == 0) dead.insert(link);
  }
  const std::set<std::uint32_t> loaded = dead.empty() ? dead : loaded_links(costs);
  const bool used =
      std::ranges::any_of(dead, [&](std::uint32_t link) { return loaded.count(link) > 0; });
  for (const std::uint32_t link : dead) {
    costs.links[link] = start.whole_capacities()[link];
    if (used || links_change) costs.link_events.push_back({0, link, {}, {}});
  }
}

/// Ways of all transfers, or images, as `network` has them for transfers priced as `taken`.
std::vector<LinkEvent::Reroute> ways_on(const FlowModel& network, const Program& program,
                                        const std::vector<PricedTransfer>& taken,
                                        const Images* images) {
  std::vector<LinkEvent::Reroute> ways;
  for (TransferId id = 0; id < program.transfers.size(); ++id) {
    PricedTransfer priced = network.price_as(program.transfers[id], taken[id]);
    if (images == nullptr) {
      ways.push_back({id, std::move(priced.cost.loads), priced.cost.image});
      continue;
    }
    std::uint32_t image = images->first(id);
    for (LinkLoads& loads : network.image_loads(program.transfers[id], images->at(id), priced))
      ways.push_back({image++, std::move(loads)});
  }
  return ways;
}

/// The ways that are others than before, which they become.
std::vector<LinkEvent::Reroute> reroutes(std::vector<LinkEvent::Reroute> ways,
                                         std::vector<LinkLoads>& before) {
  std::vector<LinkEvent::Reroute> changed;
  for (LinkEvent::Reroute& way : ways) {
    if (same_loads(way.loads, before[way.transfer])) continue;
    before[way.transfer] = way.loads;
    changed.push_back(std::move(way));
  }
  return changed;
}

}  // namespace

const config::Schema<FaultConfig>& FaultConfig::schema() {
  static const auto schema =
      config::Schema<FaultConfig>("fault", "links that degrade, fail or come back")
          .required("link", &FaultConfig::link,
                    "a link as `orrery run` and `describe topology --dot` name it, a class such as "
                    "accelerator->leaf, or a glob: \"*->system0/nvswitch3\"")
          .optional("at", &FaultConfig::at, "time from which on the link is so [ms]",
                    config::between(Seconds(0), Seconds(9e6)))
          .optional("capacity", &FaultConfig::capacity,
                    "share of the healthy capacity that is then left; 0: the link is down",
                    config::between(0, 1));
  return schema;
}

MachineNetwork::MachineNetwork(const Machine& machine, const std::vector<FaultConfig>& faults,
                               const CollectiveChoice& choice)
    : machine_(machine), states_(1) {
  if (!faults.empty()) {
    const FlowModel whole(machine.system(), machine.nodes());
    LinkStates links(whole.topology(), whole.fabric());
    for (const FaultConfig& fault : by_time(faults)) {
      if (!links.set(fault.link, fault.capacity))
        throw config::KeyError("faults", "there is no link '" + fault.link + "'");
      const Picoseconds time = to_picoseconds(fault.at);
      if (time > states_.back().time) states_.push_back({time, {}});
      states_.back().faults = links.faults();
    }
  }
  start_ = std::make_unique<FlowModel>(machine.system(), machine.nodes(), choice.algorithms,
                                       choice.protocol, states_.front().faults);
}

void MachineNetwork::add_link_events(const Program& program,
                                     const std::vector<PricedTransfer>& priced, Costs& costs,
                                     const Images* images) const {
  add_dead_links(*start_, states_.size() > 1, costs);
  if (states_.size() == 1) return;
  std::vector<LinkLoads> ways;
  for (const TransferCost& transfer : costs.transfers) ways.push_back(transfer.loads);
  std::vector<BytesPerSecond> before = start_->capacities();
  for (std::size_t i = 1; i < states_.size(); ++i) {
    const FlowModel network(machine_.system(), machine_.nodes(), "auto", "auto", states_[i].faults);
    const std::vector<BytesPerSecond>& after = network.capacities();
    const std::size_t first = costs.link_events.size();
    for (std::uint32_t link = 0; link < after.size(); ++link) {
      if (after[link] == before[link]) continue;
      costs.link_events.push_back({states_[i].time, link, after[link], {}});
    }
    if (costs.link_events.size() == first) continue;  // nothing happens
    costs.link_events.back().reroutes = reroutes(ways_on(network, program, priced, images), ways);
    before = after;
  }
}

void check_faults(const Machine& machine, const std::vector<FaultConfig>& faults,
                  const config::Node& node, config::Diagnostics& diagnostics) {
  if (faults.empty()) return;
  const FlowModel whole(machine.system(), machine.nodes());
  LinkStates links(whole.topology(), whole.fabric());
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string& pattern = faults[i].link;
    if (links.set(pattern, 1)) continue;
    std::vector<std::string> notes;
    if (!whole.topology().bundles().empty()) {
      notes = {"links are of these classes: " + comma_joined(links.classes()),
               "one of them is '" + whole.topology().bundle_name(0) + "'"};
    }
    const config::Node& written = *node.at_path("faults." + std::to_string(i) + ".link");
    diagnostics.error(written.where(), written.length(), "there is no link '" + pattern + "'",
                      links.nearest(pattern), std::move(notes));
  }
}

}  // namespace orrery
