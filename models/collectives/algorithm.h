// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "models/topologies/fabric.h"
#include "models/topologies/route_lengths.h"
#include "sim/config/registry.h"
#include "sim/graph/transfer.h"
#include "sim/units/units.h"

namespace orrery {

struct Schedule;
struct Collective;
struct DimensionConfig;

/// Receives the traffic of an algorithm, in however many messages it is.
class FlowSink {
 public:
  virtual ~FlowSink() = default;

  /// `bytes` go from one rank to another.
  virtual void add(int source, int destination, Bytes bytes) = 0;
  /// Every rank of the group sends `bytes` to each other one.
  virtual void exchange(std::span<const int> group, Bytes bytes);
  /// Every rank sends every other one what an all_to_all with pair_bytes has for it.
  void exchange_parts(const Collective& collective);
  /// Every rank of the group sends `bytes` up, and the switches reduce them to one result of that
  /// size. Only where Collective::switches_reduce.
  virtual void reduce(std::span<const int> group, Bytes bytes) = 0;
  /// The switches send one copy of `bytes` to every rank of the group. Only where
  /// Collective::switches_reduce.
  virtual void multicast(std::span<const int> group, Bytes bytes) = 0;
};

/// Dependent steps on the longest chain of an algorithm: each costs one latency. Of two chains the
/// one with more steps between systems is the longer, then that with more inside, then that with
/// more links.
struct StepCount {
  int scale_up = 0;   ///< steps between ranks of one system
  int scale_out = 0;  ///< steps between systems
  ExtraLinks links = {};
  bool operator==(const StepCount&) const = default;
};
inline StepCount longer(StepCount a, StepCount b) {
  const auto key = [](const StepCount& s) {
    return std::tie(s.scale_out, s.scale_up, s.links.scale_out, s.links.scale_up);
  };
  return key(a) >= key(b) ? a : b;
}
/// The chain with one more step at its end, over the shortest route.
inline StepCount step_after(StepCount chain, bool between_systems) {
  ++(between_systems ? chain.scale_out : chain.scale_up);
  return chain;
}
/// Two chains, one after the other.
inline StepCount operator+(StepCount a, StepCount b) {
  return {a.scale_up + b.scale_up,
          a.scale_out + b.scale_out,
          {a.links.scale_up + b.links.scale_up, a.links.scale_out + b.links.scale_out}};
}
/// A chain without one that it begins with.
StepCount operator-(StepCount a, StepCount b);

inline bool is_any(TransferKind kind, std::initializer_list<TransferKind> kinds) {
  return std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
}

/// One group of a transfer: at least two different ranks.
struct Collective {
  TransferKind kind = TransferKind::kAllReduce;
  Bytes bytes;  ///< bytes as in Transfer
  std::span<const int> group;
  const RankLayout& layout;
  bool switches_reduce = false;  ///< the fabric between these ranks reduces and multicasts
  bool systems_reduce = false;   ///< the fabric inside each system does, among its ranks
  /// Sizes of the axes of the torus that the group fills, in order, the first axis fastest; empty
  /// where it is none.
  std::vector<int> torus = {};
  /// The dimensions that the group fills, of a network of several, the first fastest; empty where
  /// it fills none or there are none.
  std::vector<const DimensionConfig*> dimensions = {};
  bool each_dimension = false;  ///< all-reduces go through them as AllReduceOrder::kEachDimension
  const ExpertRouting* routing = nullptr;  ///< routing of a dispatch or combine
  const RouteLengths* routes = nullptr;    ///< none: all are taken for the shortest
  /// Rings over direct links through the members of each system, both in rank order; empty where
  /// rings go in rank order.
  std::vector<RingOrders> rings = {};
  /// Parts of different sizes of an all_to_all, as in Transfer; empty: bytes / n each.
  std::span<const Bytes> pair_bytes = {};

  int size() const { return static_cast<int>(group.size()); }
  bool is_any(std::initializer_list<TransferKind> kinds) const {
    return orrery::is_any(kind, kinds);
  }
  /// The rank of a member (position in the group).
  int rank(int member) const { return group[static_cast<std::size_t>(member)]; }
  bool spans_systems() const;
  /// Whether two members (positions in the group) are in different systems.
  bool crosses(int member, int other) const {
    return layout.system(rank(member)) != layout.system(rank(other));
  }
  /// One step, from one member (position in the group) to another.
  StepCount step(int from, int to) const;
  /// What an all_to_all with pair_bytes moves from one member to another.
  Bytes between(int from, int to) const {
    return pair_bytes[static_cast<std::size_t>(from) * group.size() + static_cast<std::size_t>(to)];
  }
};

/// How a collective is carried out: who sends how much to whom, and in how many dependent steps.
/// Stateless; one object serves all threads and runs.
class CollectiveAlgorithm {
 public:
  virtual ~CollectiveAlgorithm() = default;

  virtual bool serves(const Collective& collective) const = 0;
  /// Reports all flows of the group. Only for a collective that it serves.
  virtual StepCount run(const Collective& collective, FlowSink& sink) const = 0;
  /// Whether run() counts the links of its longest chain. Otherwise each step of it is taken to be
  /// as long as the longest route of a message.
  virtual bool counts_links() const { return false; }
  /// The same message by message, which proves what the algorithm computes (verify_semantics). For
  /// small groups: an all-to-all has the square of the group. Only for a collective that it serves.
  virtual Schedule schedule(const Collective& collective) const = 0;
  /// Whether `auto` takes it, because communication libraries do. What no such algorithm serves,
  /// all others compete for.
  virtual bool automatic() const { return true; }
  /// Whether its kernels read and write the memory of peers themselves, without a library.
  virtual bool writes_peers() const { return false; }
  /// Parts of the file that it was read from that have no equal here, each in a line.
  virtual std::vector<std::string> left_out() const { return {}; }
};

using AlgorithmRegistry = Registry<std::shared_ptr<const CollectiveAlgorithm>>;

}  // namespace orrery
