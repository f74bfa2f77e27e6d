// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/fabric.h"
#include "models/topologies/route_lengths.h"
#include "models/transfers/bulk.h"
#include "models/transfers/dimension_price.h"
#include "models/transfers/expert_exchange.h"
#include "models/transfers/group_forms.h"
#include "models/transfers/protocols.h"
#include "sim/graph/images.h"
#include "sim/graph/topology.h"
#include "sim/graph/transfer.h"
#include "sim/machine/network.h"
#include "sim/units/units.h"

namespace orrery {

class GroupSink;
class LoadSink;

/// The flow-level network: a transfer is a latency (steps of its collective algorithm) and then
/// bytes on links, sprayed ideally over all equal shortest paths of switches. See README.md for
/// what that leaves out.
class FlowModel final : public Network {
 public:
  static constexpr const char* kAuto = "auto";

  /// @param copies systems joined by the scale-out network
  /// @param algorithms registered collective algorithms and files of others, the one that goes
  ///        first in front. What none of them serves is left to "auto": the fastest for each
  ///        transfer in isolation among those that libraries choose from (or, where none of them
  ///        serves it, among all). "auto" among them names none.
  /// @param protocol "ll", "ll128", "simple", or "auto". Where the system's fabric has protocols,
  ///        "auto" takes algorithm and protocol as the library would, by its own cost model, and
  ///        prices them by the measured parameters. A named protocol that does not serve a transfer
  ///        leaves it to "auto".
  /// @param faults of links, each bundle once. A library chooses algorithm and protocol as on whole
  ///        links, where that can go on, and protocols cost their latencies as there.
  /// @throws config::ConfigError for an unknown topology, algorithm or protocol, and for sizes that
  ///         do not fit together.
  FlowModel(const SystemConfig& system, int copies, const std::vector<std::string>& algorithms,
            const std::string& protocol = kAuto, std::span<const LinkFault> faults = {});
  FlowModel(const SystemConfig& system, int copies, const std::string& algorithm = kAuto,
            const std::string& protocol = kAuto, std::span<const LinkFault> faults = {})
      : FlowModel(system, copies, std::vector<std::string>{algorithm}, protocol, faults) {}

  const Topology& topology() const override { return topology_; }
  const std::vector<BytesPerSecond>& capacities() const override { return capacities_; }
  /// The same without faults.
  const std::vector<BytesPerSecond>& whole_capacities() const {
    return whole_capacities_.empty() ? capacities_ : whole_capacities_;
  }
  PricedTransfer price(const Transfer& transfer) const override;
  /// The price with the algorithm and protocol that were taken on another state of these links.
  /// @throws as price()
  PricedTransfer price_as(const Transfer& transfer, const PricedTransfer& taken) const;

  /// What each image of a transfer loads that has this price: of all together, its loads.
  std::vector<LinkLoads> image_loads(const Transfer& transfer, const TransferImages& images,
                                     const PricedTransfer& priced) const;

  /// How a transfer is carried out. Empty where the fabric has no protocols.
  /// @throws as price()
  std::optional<Carried> carried(const Transfer& transfer) const;

  /// Whether one of the named algorithms serves a transfer.
  bool has_named(const Transfer& transfer) const;

  /// One group of a transfer, with what the fabric can do among it.
  Collective collective(const Transfer& transfer, std::span<const int> group) const;

  /// Bundles that a message crosses, and the share of its bytes on each.
  /// @throws std::out_of_range for a rank that does not exist.
  Route route(int source, int destination) const;
  /// The topology with every physical link, which prices do not need.
  Topology drawn() const;
  const Fabric& fabric() const { return *fabric_; }

 private:
  /// One option for carrying out a transfer.
  struct Candidate {
    PricedTransfer priced;
    /// What the library expects of it; it chooses the least. Empty: it does not know it.
    std::optional<Seconds> expected;

    bool beats(const std::optional<Candidate>& best) const;
  };

  /// As named algorithms and protocol, then "auto", carry it.
  std::optional<PricedTransfer> by_choice(const Transfer& transfer) const;
  std::optional<PricedTransfer> as_on_whole_links(const Transfer& transfer) const;
  std::optional<PricedTransfer> by_all_reduce(const Transfer& transfer) const;
  std::optional<PricedTransfer> best(const Transfer& transfer, const std::string& algorithm,
                                     std::optional<Protocol> protocol) const;
  /// What best() finds for a transfer whose groups lie in systems, by one system of each kind.
  std::optional<PricedTransfer> best_of_sample(const Transfer& transfer,
                                               const std::string& algorithm,
                                               std::optional<Protocol> protocol) const;
  /// Faults make systems differ.
  GroupForms forms_of(const Transfer& transfer) const {
    return {transfer, layout_, whole_capacities_.empty()};
  }
  void try_algorithm(const Transfer& transfer, const GroupForms& groups, const std::string& name,
                     std::optional<Protocol> protocol, LoadSink& sink,
                     std::optional<Candidate>& best) const;
  Seconds run_groups(const Transfer& transfer, const GroupForms& groups,
                     const CollectiveAlgorithm& algorithm, LoadSink& sink, DimensionPrice* turns,
                     PricedTransfer& priced) const;
  PricedTransfer price_with(const Transfer& transfer, const GroupForms& groups,
                            const std::string& name, const CollectiveAlgorithm& algorithm,
                            LoadSink& sink) const;
  Traffic traffic(const Transfer& transfer, const PricedTransfer& priced) const;
  PricedTransfer carried_by(Protocol protocol, const Traffic& traffic, PricedTransfer priced) const;
  DeviceLoad device_load(const Transfer& transfer, const PricedTransfer& priced) const;
  void add_dimensions(Collective& collective) const;
  void add_rings(Collective& collective, std::vector<int> first_system) const;
  bool serves(const CollectiveAlgorithm& algorithm, const Transfer& transfer,
              const GroupForms& groups) const;
  void send_group(const Transfer& transfer, std::span<const int> group,
                  const CollectiveAlgorithm* algorithm, GroupSink& sink) const;
  double image_size(const Transfer& transfer, const PricedTransfer& priced) const;
  PricedTransfer host_price(const Transfer& transfer) const;

  bool names(const std::string& algorithm) const {
    return std::find(named_.begin(), named_.end(), algorithm) != named_.end();
  }
  /// Whether "auto" chooses among such algorithms. Others it takes where none of those serves.
  bool tries_first(const std::string& name, const CollectiveAlgorithm& algorithm,
                   const Transfer& transfer) const;

  std::vector<std::string> named_;  ///< algorithms that go before "auto"
  std::optional<ExpertExchangePrice> expert_exchange_;
  std::optional<Protocol> forced_protocol_;
  std::optional<ProtocolsConfig> protocols_;
  bool library_chooses_;  // which algorithm: it was tuned for this fabric
  BytesPerSecond line_;
  bool several_lines_;  ///< cards have PCIe and bridges: the slowest that is used counts
  double scale_up_efficiency_;
  RankLayout layout_;
  Seconds launch_;  // of a collective without protocols
  std::optional<BulkPrice> bulk_;
  /// What bytes that switches reduce take of a NIC's payload rate, over others.
  double reduction_slowdown_;
  bool reduces_between_;  // systems, if the switches there can
  bool has_hosts_;
  Seconds copy_start_;
  Seconds scale_up_latency_, scale_out_latency_;
  Seconds scale_up_hop_, scale_out_hop_;  ///< latency of a link beyond the shortest route
  Topology topology_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<BytesPerSecond> capacities_;
  std::vector<BytesPerSecond> whole_capacities_;  ///< capacities without faults, if there are any
  std::unique_ptr<const FlowModel> whole_;  ///< network without faults, where a library chooses
  std::optional<RouteLengths> routes_;      ///< lengths of routes, where hops cost latency
};

/// A broadcast or reduction as the all-reduce that does no less.
Transfer as_all_reduce(Transfer transfer);

struct SystemConfig;

/// What copies between ranks and their host boards cross.
struct HostPath {
  const Fabric& fabric;
  const std::vector<BytesPerSecond>& capacities;  ///< payload, by bundle
  Seconds start;                                  ///< time once per copy
};

/// The price of a transfer with `host`: start + largest of bytes / rate over the links, which ranks
/// behind the same PCIe switch share. Algorithm "copy".
/// @throws config::ConfigError where nothing leads to storage; std::logic_error where the fabric
///         has no host links.
PricedTransfer host_copy(const Transfer& transfer, const HostPath& path);

}  // namespace orrery
