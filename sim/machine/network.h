// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/topology.h"
#include "sim/graph/transfer.h"

namespace orrery {

/// Bytes that go from one package to another over links of each kind, once for the whole route: a
/// message through a leaf switch counts once, one through leaf and spine twice. For energy.
struct BytesByKind {
  Bytes scale_up;
  Bytes scale_out;
};

/// Everything the network model knows about one transfer that has the machine for itself.
struct PricedTransfer {
  std::string algorithm;            ///< "ring", "direct", ...
  std::string protocol = "simple";  ///< or "ll", "ll128"
  int scale_up_steps = 0;           ///< dependent steps inside a system, on the longest chain
  int scale_out_steps = 0;
  TransferCost cost;
  Seconds hop_latency;    ///< the part of the latency that is routes longer than the shortest
  Seconds isolated_time;  ///< latency + the largest load over capacity
  Seconds limit;          ///< the largest payload over capacity: what no protocol beats
  std::optional<std::uint32_t> bottleneck;  ///< the link (index into Costs::links) of that load
  BytesByKind bytes;
  Bytes memory;  ///< bytes that the busiest rank moves in its memory, to send and receive
  /// A broadcast or reduction is carried out as an all-reduce.
  bool as_all_reduce = false;
};

/// Prices transfers between the ranks of `copies` of a system.
///
/// Ranks are numbered by system, then host board, then package, then die: die d of package p of a
/// board is `board * ranks_per_node + p * dies + d`. A link of `Costs` is a bundle of the topology;
/// its capacity is the line rate times the payload efficiency, so that loads are bytes of payload.
class Network {
 public:
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  virtual const Topology& topology() const = 0;
  /// Payload capacities by link, as `Costs::links`.
  virtual const std::vector<BytesPerSecond>& capacities() const = 0;
  /// @throws config::ConfigError for a group that names a rank twice or a rank that does not exist,
  /// or where no algorithm serves the transfer; std::logic_error for a transfer without groups.
  virtual PricedTransfer price(const Transfer& transfer) const = 0;

  TransferCost cost(const Transfer& transfer) const { return price(transfer).cost; }
  Seconds isolated_time(const Transfer& transfer) const { return price(transfer).isolated_time; }
  /// Sets `links`; topology().bundle_name() names them.
  void fill_links(Costs& costs) const { costs.links = capacities(); }
};

}  // namespace orrery
