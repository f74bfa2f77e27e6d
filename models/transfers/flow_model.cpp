// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/flow_model.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "models/collectives/plans/user_algorithm.h"
#include "models/transfers/flow_record.h"
#include "models/transfers/group_forms.h"
#include "models/transfers/load_sink.h"
#include "sim/config/diagnostics.h"
#include "sim/config/library.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

constexpr const char* kInNetwork = "sharp";          // the algorithm that reduces between systems
constexpr const char* kByDimensions = "dimensions";  // the one with a price of its own

/// Extra links of a chain in which each step waits for the message with the longest route.
ExtraLinks links_of(StepCount steps, const LongestRoutes& longest) {
  return {.scale_up =
              steps.scale_up * longest.inside.scale_up + steps.scale_out * longest.between.scale_up,
          .scale_out = steps.scale_out * longest.between.scale_out};
}

constexpr const char* kFarFirst = "pat";  // the one that NCCL takes on one rank a node

/// Names and files without "auto".
std::vector<std::string> without_auto(std::vector<std::string> algorithms) {
  std::erase(algorithms, FlowModel::kAuto);
  return algorithms;
}

/// Payload rates by bundle: line rates times the efficiency of the fabric. Links on a
/// package carry the same protocol as the scale-up fabric and share its efficiency.
/// @throws config::ConfigError where one is not positive.
std::vector<BytesPerSecond> payload_capacities(const SystemConfig& system,
                                               const Topology& topology) {
  std::vector<BytesPerSecond> capacities;
  capacities.reserve(topology.bundles().size());
  for (BundleId id = 0; id < topology.bundles().size(); ++id) {
    const Bundle& bundle = topology.bundles()[id];
    const bool scale_out = bundle.kind == LinkKind::kScaleOut;
    const Fact<double>& efficiency =
        scale_out ? system.scale_out.efficiency : system.scale_up.efficiency;
    // Links to hosts are configured with what reaches payload.
    const double share = bundle.kind == LinkKind::kHost ? 1 : efficiency.value;
    capacities.push_back(bundle.capacity * share);
    if (!(capacities.back().base() > 0)) {
      throw config::ConfigError(system.name + ": bandwidth and efficiency of " +
                                topology.bundle_name(id) + " must be positive");
    }
  }
  return capacities;
}

double reduction_slowdown(const SystemConfig& system) {
  const BytesPerSecond limit = system.scale_out.reduction_bandwidth.value;
  if (limit.base() <= 0) return 1;
  const BytesPerSecond payload =
      system.accelerator.scale_out.bandwidth.value * system.scale_out.efficiency.value;
  return std::max(1.0, payload / limit);
}

bool crosses_nodes(const Transfer& transfer, const RankLayout& layout) {
  return std::any_of(transfer.groups.begin(), transfer.groups.end(), [&](const auto& group) {
    return std::any_of(group.begin(), group.end(),
                       [&](int rank) { return layout.node(rank) != layout.node(group.front()); });
  });
}

}  // namespace

FlowModel::FlowModel(const SystemConfig& system, int copies,
                     const std::vector<std::string>& algorithms, const std::string& protocol,
                     std::span<const LinkFault> faults)
    : named_(without_auto(algorithms)),
      forced_protocol_(forced_protocol(protocol)),
      protocols_(system.scale_up.protocols),
      library_chooses_(protocols_ && chooses_algorithms_on(*protocols_, system.scale_up.kind)),
      line_(system.accelerator.scale_up.bandwidth.value),
      several_lines_(system.scale_up.keys->has_slots()),
      scale_up_efficiency_(system.scale_up.efficiency.value),
      layout_(rank_layout(system, copies)),
      launch_(system.scale_up.launch.value),
      reduction_slowdown_(reduction_slowdown(system)),
      reduces_between_(system.scale_out.reduction == NetworkReduction::kAutomatic ||
                       names(kInNetwork)),
      has_hosts_(system.host.links),
      copy_start_(system.accelerator.kernel.launch.value),
      scale_up_latency_(system.scale_up.latency.value),
      scale_out_latency_(system.scale_out.latency.value),
      scale_up_hop_(system.scale_up.hop_latency.value),
      scale_out_hop_(system.scale_out.hop_latency.value),
      fabric_(build_fabric(system, layout_, topology_)),
      capacities_(payload_capacities(system, topology_)) {
  topology_.trim();
  if (system.expert_exchange) expert_exchange_.emplace(system);
  if (system.scale_up.bulk) bulk_.emplace(system);
  if (!faults.empty()) whole_capacities_ = capacities_;
  if (scale_up_hop_ > Seconds(0) || scale_out_hop_ > Seconds(0)) routes_.emplace(*fabric_, layout_);
  for (const LinkFault& fault : faults) {
    fabric_->degrade(fault.bundle, fault.share, topology_);
    capacities_[fault.bundle] *= fault.share;
  }
  if (!faults.empty() && library_chooses_)
    whole_ = std::make_unique<FlowModel>(system, copies, algorithms, protocol);
  for (const std::string& algorithm : named_) find_algorithm(algorithm);
}

Route FlowModel::route(int source, int destination) const {
  if (source < 0 || destination < 0 || std::max(source, destination) >= layout_.ranks()) {
    throw std::out_of_range("route between ranks that do not exist");
  }
  Route route;
  if (source != destination) fabric_->append_route(source, destination, route);
  return route;
}

Topology FlowModel::drawn() const {
  Topology drawn = topology_;
  fabric_->draw(drawn);
  return drawn;
}

Collective FlowModel::collective(const Transfer& transfer, std::span<const int> group) const {
  Collective collective{transfer.kind, transfer.bytes, group, layout_};
  collective.switches_reduce =
      (reduces_between_ || !collective.spans_systems()) && fabric_->reduces(group);
  collective.torus = fabric_->torus(group);
  add_dimensions(collective);
  std::vector<int> first_system;
  for (const int rank : group) {
    if (layout_.system(rank) == layout_.system(group.front())) first_system.push_back(rank);
  }
  collective.systems_reduce = first_system.size() > 1 && fabric_->reduces(first_system);
  if (transfer.routing) collective.routing = &*transfer.routing;
  if (routes_) collective.routes = &*routes_;
  collective.pair_bytes = transfer.pair_bytes;
  add_rings(collective, std::move(first_system));
  return collective;
}

void FlowModel::add_dimensions(Collective& collective) const {
  const DimensionGrid* grid = fabric_->dimensions();
  if (grid == nullptr || collective.spans_systems()) return;
  for (const int d : grid->filled_by(collective.group))
    collective.dimensions.push_back(&grid->dimensions()[static_cast<std::size_t>(d)]);
  collective.each_dimension = grid->network().all_reduce == AllReduceOrder::kEachDimension;
}

void FlowModel::add_rings(Collective& collective, std::vector<int> first_system) const {
  std::sort(first_system.begin(), first_system.end());
  if (fabric_->rings(first_system).empty()) return;
  std::map<int, std::vector<int>> systems;
  for (const int rank : collective.group) systems[layout_.system(rank)].push_back(rank);
  for (auto& [system, members] : systems) {
    std::sort(members.begin(), members.end());
    collective.rings.push_back(fabric_->rings(members));
    if (!collective.rings.back().empty()) continue;
    std::vector<int>& by_rank = collective.rings.back().emplace_back(members.size());
    std::iota(by_rank.begin(), by_rank.end(), 0);
  }
}

PricedTransfer FlowModel::price(const Transfer& transfer) const {
  check_groups(transfer, layout_.ranks());
  if (transfer.host && !has_hosts_)
    throw config::ConfigError("transfer " + transfer.name +
                              " goes to a host, whose links are not part of the network: "
                              "host.links");
  if (transfer.host) return host_price(transfer);
  std::optional<PricedTransfer> priced = as_on_whole_links(transfer);
  if (!priced) priced = by_choice(transfer);
  if (!priced)
    throw config::ConfigError(std::string("no algorithm for ") + to_string(transfer.kind));
  if (auto all = by_all_reduce(transfer); all && all->isolated_time < priced->isolated_time)
    priced = std::move(all);
  priced->cost.device = device_load(transfer, *priced);
  priced->cost.image = image_size(transfer, *priced);
  return *std::move(priced);
}

/// Bytes move at an even rate over the whole of the transfer. Where no kernel is known to move
/// them, engines do, which take no SM.
DeviceLoad FlowModel::device_load(const Transfer& transfer, const PricedTransfer& priced) const {
  DeviceLoad load;
  if (priced.cost.loads.empty() || !(priced.isolated_time > Seconds(0))) return load;
  load.memory = std::llround((priced.memory / priced.isolated_time).base());
  if (transfer.routing && expert_exchange_) {
    load.units = transfer.routing->hook ? 0 : expert_exchange_->units();
  } else if (protocols_) {
    load.units = channels_of(*protocols_, parse_protocol(priced.protocol).value(),
                             traffic(transfer, priced));
  }
  return load;
}

PricedTransfer FlowModel::price_as(const Transfer& transfer, const PricedTransfer& taken) const {
  check_groups(transfer, layout_.ranks());
  if (transfer.host) return host_price(transfer);
  auto priced = best(taken.as_all_reduce ? as_all_reduce(transfer) : transfer, taken.algorithm,
                     parse_protocol(taken.protocol));
  if (priced) {
    priced->as_all_reduce = taken.as_all_reduce;
    priced->cost.image = image_size(transfer, *priced);
    return *std::move(priced);
  }
  throw std::logic_error("transfer " + transfer.name + " was never carried by " + taken.algorithm);
}

std::optional<Carried> FlowModel::carried(const Transfer& transfer) const {
  if (!protocols_ || transfer.host || (transfer.routing && expert_exchange_)) return {};
  const PricedTransfer priced = price(transfer);
  const auto algorithm = find_algorithm(priced.algorithm);
  LoadSink sink(*fabric_, capacities_.size(), layout_.ranks());
  const PricedTransfer raw =
      price_with(transfer, forms_of(transfer), priced.algorithm, *algorithm, sink);
  return Carried{parse_protocol(priced.protocol).value(), traffic(transfer, raw)};
}

Traffic FlowModel::traffic(const Transfer& transfer, const PricedTransfer& priced) const {
  Traffic t;
  t.kind = transfer.kind;
  t.traffic_class = traffic_class(priced.algorithm, transfer.kind);
  t.tree = priced.algorithm == "tree" || priced.algorithm == "nvls_tree";
  t.far_first = priced.algorithm == kFarFirst;
  t.bytes = transfer.bytes;
  t.steps = {priced.scale_up_steps, priced.scale_out_steps};
  t.byte_sums = transfer.byte_sums;
  t.line = line_;
  t.efficiency = scale_up_efficiency_;
  const auto& largest =
      *std::max_element(transfer.groups.begin(), transfer.groups.end(),
                        [](const auto& a, const auto& b) { return a.size() < b.size(); });
  t.ranks = static_cast<int>(largest.size());
  std::vector<int> systems(largest.size());
  std::transform(largest.begin(), largest.end(), systems.begin(),
                 [this](int rank) { return layout_.system(rank); });
  std::sort(systems.begin(), systems.end());
  t.systems = static_cast<int>(std::unique(systems.begin(), systems.end()) - systems.begin());
  t.net_latency = std::max(Seconds(0), scale_out_latency_ - protocols_->net_latency.value);
  // Named, or taken by an engine, it is a kernel that reads and writes the memory of peers.
  if (!names("direct") && priced.algorithm == "direct" &&
      all_pairs(*protocols_, t.kind, t.bytes, t.ranks, t.systems))
    t.traffic_class = TrafficClass::kChain;
  if (t.systems == 1 && config::Library::is_path(priced.algorithm) &&
      find_algorithm(priced.algorithm)->writes_peers())
    t.traffic_class = TrafficClass::kOneShot;
  for (const LinkLoad& load : priced.cost.loads) {
    const Seconds time = Bytes(load.bytes) / whole_capacities()[load.link];
    if (topology_.bundles()[load.link].kind == LinkKind::kScaleOut) {
      t.scale_out_time = std::max(t.scale_out_time, time);
    } else {
      const BytesPerSecond rate = whole_capacities()[load.link] / scale_up_efficiency_;
      if (several_lines_) t.line = t.scale_up_time > Seconds(0) ? std::min(t.line, rate) : rate;
      t.scale_up_time = std::max(t.scale_up_time, time * scale_up_efficiency_);
    }
  }
  return t;
}

PricedTransfer FlowModel::carried_by(Protocol protocol, const Traffic& traffic,
                                     PricedTransfer priced) const {
  const ProtocolCost cost = protocol_cost(*protocols_, protocol, traffic);
  priced.protocol = to_string(protocol);
  Seconds slowest;
  priced.bottleneck.reset();
  priced.cost.loads.change([&](LinkLoad& load) {
    const bool out = topology_.bundles()[load.link].kind == LinkKind::kScaleOut;
    load.bytes *= out ? cost.scale_out : cost.scale_up * scale_up_efficiency_;
    const Seconds time = Bytes(load.bytes) / capacities_[load.link];
    if (time <= slowest) return;
    slowest = time;
    priced.bottleneck = load.link;
  });
  priced.cost.latency = to_picoseconds(cost.latency + priced.hop_latency);
  priced.isolated_time = cost.latency + priced.hop_latency + slowest;
  return priced;
}

/// Sends the flows of all groups and gives the latency of the longest chain, whose steps are left
/// in `priced`.
Seconds FlowModel::run_groups(const Transfer& transfer, const GroupForms& groups,
                              const CollectiveAlgorithm& algorithm, LoadSink& sink,
                              DimensionPrice* turns, PricedTransfer& priced) const {
  const bool by_longest = routes_ && !algorithm.counts_links();
  Seconds latency;
  std::map<std::size_t, FlowRecord> records;  // by form of several groups
  for (std::size_t i = 0; i < transfer.groups.size(); ++i) {
    const auto [form, behind] = groups.images()[i];
    if (transfer.groups[i].size() == 1) continue;
    if (const auto record = records.find(form); record != records.end()) {
      sink.measure(nullptr);
      record->second.repeat(behind);
      continue;
    }
    sink.measure(by_longest ? &*routes_ : nullptr);
    const Collective group = collective(transfer, transfer.groups[i]);
    StepCount steps = groups.forms()[form].groups == 1
                          ? algorithm.run(group, sink)
                          : algorithm.run(group, records.try_emplace(form, sink).first->second);
    if (by_longest) steps.links = links_of(steps, sink.longest());
    const Seconds hops =
        scale_up_hop_ * steps.links.scale_up + scale_out_hop_ * steps.links.scale_out;
    const Seconds chain = turns != nullptr
                              ? turns->add(group)
                              : (scale_up_latency_ + sink.link_latency()) * steps.scale_up +
                                    scale_out_latency_ * steps.scale_out + hops;
    if (chain < latency) continue;
    latency = chain;
    priced.hop_latency = hops;
    priced.scale_up_steps = steps.scale_up;
    priced.scale_out_steps = steps.scale_out;
  }
  return latency;
}

PricedTransfer FlowModel::price_with(const Transfer& transfer, const GroupForms& groups,
                                     const std::string& name, const CollectiveAlgorithm& algorithm,
                                     LoadSink& sink) const {
  PricedTransfer priced;
  priced.algorithm = name;
  sink.clear();
  std::optional<DimensionPrice> turns;
  if (name == kByDimensions && fabric_->dimensions() != nullptr)
    turns.emplace(*fabric_->dimensions(), scale_up_latency_, scale_up_efficiency_);
  Seconds latency =
      run_groups(transfer, groups, algorithm, sink, turns ? &*turns : nullptr, priced);
  const bool bulk = bulk_ && bulk_->serves(transfer, layout_);
  if (priced.scale_up_steps + priced.scale_out_steps > 0)
    latency += bulk ? bulk_->start(transfer, layout_) : launch_;
  Seconds slowest;
  const bool in_network = name == kInNetwork;
  sink.each_load([&](BundleId link, double payload) {
    double bytes = payload;
    if (in_network && topology_.bundles()[link].kind == LinkKind::kScaleOut)
      bytes *= reduction_slowdown_;
    if (bulk) bytes *= bulk_->load(transfer.kind);
    priced.cost.loads.push_back({link, bytes, payload});
    const Seconds time = Bytes(bytes) / capacities_[link];
    if (time <= slowest) return;
    slowest = time;
    priced.bottleneck = link;
  });
  priced.cost.latency = to_picoseconds(latency);
  priced.isolated_time = latency + slowest;
  priced.limit = slowest;
  if (turns) turns->apply(latency, whole_capacities(), capacities_, priced);
  priced.bytes = bytes_by_kind(priced.cost.loads, topology_.bundles());
  priced.memory = sink.most_memory();
  if (transfer.routing && expert_exchange_)
    expert_exchange_->apply(transfer, crosses_nodes(transfer, layout_), topology_, capacities_,
                            priced);
  return priced;
}

}  // namespace orrery
