// SPDX-License-Identifier: Apache-2.0
#include "models/network/flow_model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "models/collectives/user_algorithm.h"
#include "sim/config/diagnostics.h"
#include "sim/machine/system_config.h"

namespace orrery {
namespace {

constexpr const char* kAuto = "auto";

/// Adds up the bytes on every bundle.
class LoadSink final : public FlowSink {
 public:
  LoadSink(const Fabric& fabric, std::size_t bundles) : fabric_(fabric), loads_(bundles) {}

  void add(int source, int destination, Bytes bytes) override {
    route_.clear();
    fabric_.append_route(source, destination, route_);
    for (const Hop& hop : route_) loads_[hop.bundle] += bytes.base() * hop.share;
  }
  void exchange(std::span<const int> group, Bytes bytes) override {
    fabric_.add_exchange(group, bytes.base(), loads_);
  }
  void reduce(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_reduction(group, route_);
    for (const Hop& hop : route_) loads_[hop.bundle] += bytes.base() * hop.share;
  }
  void multicast(std::span<const int> group, Bytes bytes) override {
    route_.clear();
    fabric_.append_multicast(group, route_);
    for (const Hop& hop : route_) loads_[hop.bundle] += bytes.base() * hop.share;
  }

  const std::vector<double>& loads() const { return loads_; }

 private:
  const Fabric& fabric_;
  std::vector<double> loads_;
  Route route_;
};

BytesByKind bytes_by_kind(const std::vector<LinkLoad>& loads, const std::vector<Bundle>& bundles) {
  BytesByKind bytes;
  for (const LinkLoad& load : loads) {
    switch (bundles[load.link].kind) {
      case LinkKind::kOnPackage:
        bytes.on_package += Bytes(load.bytes);
        break;
      case LinkKind::kScaleUp:
        bytes.scale_up += Bytes(load.bytes);
        break;
      case LinkKind::kScaleOut:
        bytes.scale_out += Bytes(load.bytes);
        break;
    }
  }
  return bytes;
}

/// Payload capacities: line rates times the efficiency of the fabric. Links on a package carry the
/// same protocol as the scale-up fabric and share its efficiency.
std::vector<BytesPerSecond> payload_capacities(const SystemConfig& system,
                                               const Topology& topology) {
  std::vector<BytesPerSecond> capacities;
  for (const Bundle& bundle : topology.bundles()) {
    const bool scale_out = bundle.kind == LinkKind::kScaleOut;
    const Fact<double>& efficiency =
        scale_out ? system.scale_out.efficiency : system.scale_up.efficiency;
    capacities.push_back(bundle.capacity * efficiency.value);
    if (!(capacities.back().base() > 0)) {
      throw config::ConfigError(system.name + ": bandwidth and efficiency of " + bundle.name +
                                " must be positive");
    }
  }
  return capacities;
}

}  // namespace

FlowModel::FlowModel(const SystemConfig& system, int copies, std::string algorithm)
    : forced_algorithm_(std::move(algorithm)),
      expert_exchange_(expert_exchange_price(system)),
      layout_(rank_layout(system, copies)),
      scale_up_latency_(system.scale_up.latency.value),
      scale_out_latency_(system.scale_out.latency.value),
      fabric_(build_fabric(system, layout_, topology_)),
      capacities_(payload_capacities(system, topology_)) {
  if (forced_algorithm_ != kAuto) find_algorithm(forced_algorithm_);
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

void FlowModel::check_groups(const Transfer& transfer) const {
  if (transfer.groups.empty()) {
    throw std::logic_error("transfer " + transfer.name + " has no groups");
  }
  std::vector<int> sorted;
  for (const std::vector<int>& group : transfer.groups) {
    if (group.empty() || (transfer.kind == TransferKind::kSendReceive && group.size() != 2)) {
      throw std::logic_error("transfer " + transfer.name + " has a group of wrong size");
    }
    sorted = group;
    std::sort(sorted.begin(), sorted.end());
    if (sorted.front() < 0 || sorted.back() >= layout_.ranks()) {
      throw config::ConfigError(
          "transfer " + transfer.name + " names rank " +
          std::to_string(sorted.front() < 0 ? sorted.front() : sorted.back()) +
          "; the machine has " + std::to_string(layout_.ranks()) + " ranks");
    }
    const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
    if (twice != sorted.end()) {
      throw config::ConfigError("transfer " + transfer.name + " names rank " +
                                std::to_string(*twice) + " twice in one group");
    }
  }
}

Collective FlowModel::collective(const Transfer& transfer, std::span<const int> group) const {
  Collective collective{transfer.kind, transfer.bytes, group, layout_};
  collective.switches_reduce = fabric_->reduces(group);
  collective.torus = fabric_->torus(group);
  std::vector<int> first_system;
  for (const int rank : group) {
    if (layout_.system(rank) == layout_.system(group.front())) first_system.push_back(rank);
  }
  collective.systems_reduce = first_system.size() > 1 && fabric_->reduces(first_system);
  if (transfer.routing) collective.routing = &*transfer.routing;
  return collective;
}

bool FlowModel::serves(const CollectiveAlgorithm& algorithm, const Transfer& transfer) const {
  return std::all_of(transfer.groups.begin(), transfer.groups.end(),
                     [&](const std::vector<int>& group) {
                       return group.size() == 1 || algorithm.serves(collective(transfer, group));
                     });
}

PricedTransfer FlowModel::price(const Transfer& transfer) const {
  check_groups(transfer);
  if (forced_algorithm_ != kAuto) {
    const auto forced = find_algorithm(forced_algorithm_);
    if (serves(*forced, transfer)) return price_with(transfer, forced_algorithm_, *forced);
  }
  std::optional<PricedTransfer> best;
  for (const bool automatic : {true, false}) {
    if (best) break;
    for (const auto& [name, item] : AlgorithmRegistry::items()) {
      if (item.entry->automatic() != automatic || !serves(*item.entry, transfer)) continue;
      PricedTransfer priced = price_with(transfer, name, *item.entry);
      if (!best || priced.isolated_time < best->isolated_time) best = std::move(priced);
    }
  }
  if (!best) {
    throw config::ConfigError(std::string("no algorithm for ") + to_string(transfer.kind));
  }
  return *std::move(best);
}

PricedTransfer FlowModel::price_with(const Transfer& transfer, const std::string& name,
                                     const CollectiveAlgorithm& algorithm) const {
  PricedTransfer priced;
  priced.algorithm = name;
  LoadSink sink(*fabric_, capacities_.size());
  Seconds latency;
  for (const std::vector<int>& group : transfer.groups) {
    if (group.size() == 1) continue;
    const StepCount steps = algorithm.run(collective(transfer, group), sink);
    const Seconds chain = scale_up_latency_ * steps.scale_up + scale_out_latency_ * steps.scale_out;
    if (chain < latency) continue;
    latency = chain;
    priced.scale_up_steps = steps.scale_up;
    priced.scale_out_steps = steps.scale_out;
  }
  Seconds slowest;
  for (std::uint32_t link = 0; link < capacities_.size(); ++link) {
    const double bytes = sink.loads()[link];
    if (bytes == 0) continue;
    priced.cost.loads.push_back({link, bytes});
    const Seconds time = Bytes(bytes) / capacities_[link];
    if (time <= slowest) continue;
    slowest = time;
    priced.bottleneck = link;
  }
  priced.cost.latency = to_picoseconds(latency);
  priced.isolated_time = latency + slowest;
  priced.bytes = bytes_by_kind(priced.cost.loads, topology_.bundles());
  if (transfer.routing && expert_exchange_)
    expert_exchange_->apply(transfer, topology_, capacities_, priced);
  return priced;
}

}  // namespace orrery
