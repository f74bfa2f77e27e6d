// SPDX-License-Identifier: Apache-2.0
// What collective libraries expect of their algorithms and protocols, and choose by: constants and
// equations of NCCL 5067397 and RCCL 0cbce2a, src/graph/tuning.cc.
#include <algorithm>
#include <array>
#include <cmath>

#include "models/transfers/protocol_steps.h"
#include "models/transfers/protocols.h"

namespace orrery {
namespace {

using namespace literals;

/// Constants by protocol: LL, LL128, Simple [us].
struct Nominal {
  std::array<double, 3> base, hop, net;
};
constexpr Nominal kRing = {{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4.0, 14.0}};
constexpr Nominal kTree = {{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {5.0, 8.5, 14.0}};
constexpr Nominal kPcieRing = {kRing.base, {1.0, 2.5, 5.7}, kRing.net};  // not NVLinks alone
constexpr Nominal kPcieTree = {kTree.base, {1.0, 1.9, 4.0}, kTree.net};
// RCCL: tuning_model_5 (MI300X) and, without a model of its own, tuning_model_0 (MI250X).
constexpr Nominal kXgmi3Ring = {{12, 12, 17}, {0.8, 0, 2.1}, {9.5, 0, 320}};
constexpr Nominal kXgmi3Tree = {{12, 12, 17}, {0.9, 0, 2.3}, {10.5, 0, 25}};
constexpr Nominal kXgmiRing = {{12, 12, 17}, {0.8, 2.2, 3.6}, {9.5, 19.8, 15.1}};
constexpr Nominal kXgmiTree = {{12, 12, 17}, {0.8, 1.4, 2.5}, {11.8, 18.2, 20.8}};
constexpr double kNvls = 25, kNvlsNet = 18, kNvlsTreeNet = 20.9;  // microseconds
// CollNetDirect, likewise: a step inside and what each peer adds, a step through the network.
constexpr double kCollNetHop = 3.7, kCollNetPeer = 0.4, kCollNetNet = 31;
// PAT, likewise: its start, and the share of the rate that it counts on.
constexpr double kFarFirstBase = 8.0, kFarFirstRate = 0.75;
constexpr double kRingLl128 = 0.92;               // share of the rate of Simple
constexpr double kTreeSimple = 0.92 * kTreeRate;  // likewise, of two trees
constexpr double kTreeLl = 1 / 3.8;               // of that
constexpr double kRingLl = 0.5;                   // of Simple's, between systems
constexpr double kPlateau = 1.4;                  // of Simple's latency, rings between systems
constexpr Bytes kPlateauFrom = 64_B;              // a channel's share of a rank

/// What trees between systems reach of their rate, by protocol and powers of two of the bytes, from
/// 64 B on. Inside a system the choice would fall on a ring of LL for 2 MiB on 8 A100 (62 us),
/// which the measured row (53.7 us) is not.
constexpr Bytes kTreeFrom = 64_B;
constexpr std::size_t kTreeSizes = 23;
constexpr std::array<std::array<double, kTreeSizes>, 3> kTreeReaches = {
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

bool by_rccl(const ProtocolsConfig& c) {
  return c.nominal_links == NominalLinks::kXgmi || c.nominal_links == NominalLinks::kXgmi3;
}

const Nominal& constants(const ProtocolsConfig& c, const Traffic& t) {
  switch (c.nominal_links) {
    case NominalLinks::kNvlink:
      break;
    case NominalLinks::kPcie:
      return t.tree ? kPcieTree : kPcieRing;
    case NominalLinks::kXgmi:
      return t.tree ? kXgmiTree : kXgmiRing;
    case NominalLinks::kXgmi3:
      return t.tree ? kXgmi3Tree : kXgmi3Ring;
  }
  return t.tree ? kTree : kRing;
}

double tree_reaches(Protocol protocol, const Traffic& t) {
  if (t.systems == 1 || t.bytes < kTreeFrom) return 1;
  const auto power = static_cast<std::size_t>(std::log2(t.bytes / kTreeFrom));
  return power < kTreeSizes ? kTreeReaches.at(static_cast<std::size_t>(protocol)).at(power) : 1;
}

/// RCCL's bwRatio, by protocol: of rings, of trees in and between up to two systems, and of more.
double rccl_share(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
  using Shares = std::array<double, 3>;
  const bool third = c.nominal_links == NominalLinks::kXgmi3;
  const Shares ring = third ? Shares{0.08, 0, 1} : Shares{0.04, 0.34, 1};
  const Shares pair = third ? Shares{0.06, 0, 0.11} : Shares{0.04, 0.22, 0.91};
  const Shares more = third ? Shares{0.06, 0, 0.59} : Shares{0.04, 0.22, 0.95};
  const Shares& shares = !t.tree ? ring : t.systems <= 2 ? pair : more;
  return shares.at(static_cast<std::size_t>(protocol));
}

double nominal_share(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
  if (by_rccl(c)) return rccl_share(c, protocol, t);
  switch (protocol) {
    case Protocol::kLl:
      if (t.tree) return kTreeSimple * kTreeLl;
      return t.systems > 1 ? kRingLl : c.nominal_ll.value;
    case Protocol::kLl128:
      return t.tree ? kTreeSimple / kLl128Wire : kRingLl128;
    case Protocol::kSimple:
      return t.tree ? kTreeSimple : 1;
  }
  return 1;
}

/// What all links out of a system carry together, by rings or trees.
Bytes bus_bytes(const Traffic& t) {
  if (t.tree) return 2 * t.bytes;
  if (t.kind == TransferKind::kAllReduce) return 2 * (t.bytes - t.share());
  const bool parts = is_any(t.kind, {TransferKind::kAllGather, TransferKind::kReduceScatter});
  return parts ? t.bytes - t.share() : t.bytes;
}

/// The bytes of rings and trees. Between systems NCCL gives LL a limit of its own.
Seconds nominal_bytes(const ProtocolsConfig& c, Protocol protocol, const Traffic& t, Seconds wire) {
  Seconds time = wire / nominal_share(c, protocol, t);
  if (by_rccl(c)) return time;
  if (protocol == Protocol::kLl && t.systems > 1) {
    const auto& limit = t.systems == 2 ? c.nominal_ll_pair : c.nominal_ll_systems;
    time = std::max(time, bus_bytes(t) / (limit.value * (t.tree ? kTreeRate : 1.0)));
  }
  return t.tree ? time / tree_reaches(protocol, t) : time;
}

/// What the network says of itself to the library comes to each step; Simple flushes, too.
Seconds reported(const ProtocolsConfig& c, Protocol protocol) {
  return c.nominal_net_latency.value * (protocol == Protocol::kSimple ? 2 : 1);
}

/// Whether each system has one rank. Then NCCL expects trees' latencies of all steps, because
/// nothing hides them.
bool one_of_each(const Traffic& t) { return t.systems > 1 && t.ranks == t.systems; }

Seconds nominal_latency(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
  Nominal nominal = constants(c, t);
  if (one_of_each(t) && !by_rccl(c)) nominal.net = kTree.net;
  const auto p = static_cast<std::size_t>(protocol);
  const Seconds hops = Seconds(nominal.hop.at(p) * 1e-6) * t.steps.scale_up;
  const bool simple = protocol == Protocol::kSimple;
  double latency = nominal.base.at(p) + posted(c, hops, simple ? kSimplePosts : 1, t).base() * 1e6 +
                   (nominal.net.at(p) + reported(c, protocol).base() * 1e6) * t.steps.scale_out;
  if (!t.tree && simple && t.systems > 1 && t.kind == TransferKind::kAllReduce && !by_rccl(c) &&
      t.share() / static_cast<double>(c.channels) >= kPlateauFrom)
    latency *= kPlateau;
  return Seconds(latency * 1e-6);
}

/// Bytes of an all-reduce on the busiest link of a ring, over those of the buffer.
double ring_share(const Traffic& t) { return 2.0 * (t.ranks - 1) / t.ranks; }

/// Switches reduce inside systems, trees between them. Each rank of a system heads a channel, which
/// the tuner gives a limit; two systems exchange both ways at once.
Seconds nominal_nvls_tree(const ProtocolsConfig& c, const Traffic& t) {
  const double all = ring_share(t);
  const int channels = t.ranks / t.systems;  // one a rank of a system
  const auto heads = static_cast<double>(channels);
  const auto& limit = t.systems == 2 ? c.nominal_nvls_tree_pair : c.nominal_nvls_tree_systems;
  const Seconds inside = all / 2 * (t.bytes / (t.line * t.efficiency)) / c.nominal_nvls.value;
  const Seconds between = t.scale_out_time * (all / 2);
  const Seconds bytes = std::max({inside, between, all * t.bytes / (limit.value * heads)});
  const Seconds step = Seconds(kNvlsTreeNet * 1e-6) + reported(c, Protocol::kSimple);
  return Seconds(kNvls * 1e-6) + step * t.steps.scale_out + bytes;
}

/// PAT, on groups of one rank of each system. The tuner takes all bytes of the buffer, not the part
/// that a rank receives.
std::optional<Seconds> nominal_far_first(const ProtocolsConfig& c, Protocol protocol,
                                         const Traffic& t, Seconds wire) {
  if (!c.pat || !one_of_each(t) || protocol != Protocol::kSimple) return {};
  const double others = t.ranks - 1;
  const Seconds step = Seconds(kTree.net.back() * 1e-6) + reported(c, protocol);
  const double doublings = std::floor(std::log2(t.systems));
  return Seconds(kFarFirstBase * 1e-6) + step * (kFarFirstStep * doublings) +
         kFarFirstRank * static_cast<double>(t.ranks) + wire * (t.ranks / others / kFarFirstRate);
}

/// Switches neither add bytes of 8 bits, nor does NCCL gather and scatter by them among more ranks
/// than NCCL_MAX_NVLS_ARITY (src/enqueue.cc, updateCollCostTable).
bool has_in_switch(const ProtocolsConfig& c, const Traffic& t) {
  constexpr int kMostParts = 32;
  if (c.in_switch_ranks == 0) return false;
  using enum TransferKind;
  if (t.byte_sums && t.kind != kAllGather) return false;
  return t.kind == kAllReduce ||
         (is_any(t.kind, {kReduceScatter, kAllGather}) && t.ranks <= kMostParts);
}

/// An all-reduce goes up and down at once; a gather or scatter has one way, of which the part of
/// the rank itself is no gain.
Seconds nominal_nvls(const ProtocolsConfig& c, const Traffic& t) {
  const double others = static_cast<double>(t.ranks - 1) / t.ranks;
  const double share = t.kind == TransferKind::kAllReduce ? 1 : others;
  const Seconds line = t.bytes / (t.line * t.efficiency);
  return Seconds((kNvls + kNvlsNet * std::min(1, t.steps.scale_out)) * 1e-6) +
         line / (c.nominal_nvls.value * share);
}

/// The library has one way to send messages: each to its receiver. Connections between systems have
/// no buffers for LL.
std::optional<Seconds> nominal_messages(const ProtocolsConfig& c, Protocol protocol,
                                        std::string_view algorithm, const Traffic& t,
                                        Seconds wire) {
  if (algorithm != "direct" && algorithm != "send_receive") return {};
  const bool ll = t.systems == 1 && t.message() <= c.p2p_ll_limit.value;
  if (ll != (protocol == Protocol::kLl)) return {};
  return wire;
}

/// Trees that a library leaves out: in a box of cards NCCL gives them 0.46 of the rate of a
/// channel, rings n / 2 (n - 1); in one of MI300X RCCL has none of Simple.
bool has_trees(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
  if (t.systems > 1) return true;
  if (c.nominal_links == NominalLinks::kPcie) return false;
  return c.nominal_links != NominalLinks::kXgmi3 || protocol != Protocol::kSimple;
}

}  // namespace

bool library_adds(const ProtocolsConfig& protocols, std::string_view algorithm) {
  return protocols.pat && algorithm == "pat";
}

double tree_reach(Protocol protocol, const Traffic& t) {
  if (t.traffic_class != TrafficClass::kChain || !t.tree || t.systems == 1) return 1;
  const auto& table = kTreeReaches.at(static_cast<std::size_t>(protocol));
  const double power = std::max(0.0, std::log2(t.bytes / kTreeFrom));
  const auto below = static_cast<std::size_t>(power);
  const auto reach = [&](std::size_t i) { return i < kTreeSizes ? table.at(i) : 1.0; };
  return std::lerp(reach(below), reach(below + 1), power - static_cast<double>(below));
}

std::optional<Seconds> nominal_time(const ProtocolsConfig& config, Protocol protocol,
                                    std::string_view algorithm, const Traffic& t) {
  const Seconds wire = std::max(t.scale_up_time / t.efficiency, t.scale_out_time);
  if (t.traffic_class == TrafficClass::kMessages)
    return nominal_messages(config, protocol, algorithm, t, wire);
  if (algorithm == "nvls") {
    if (!has_in_switch(config, t) || t.ranks < config.in_switch_ranks) return {};
    return nominal_nvls(config, t);
  }
  if (algorithm == "nvls_tree") {
    if (!has_in_switch(config, t)) return {};
    return nominal_nvls_tree(config, t);
  }
  if (algorithm == "sharp") {
    const int peers = std::max(0, t.ranks / t.systems - 1);
    const double latency = 2 * (kCollNetHop * std::min(1, peers) + kCollNetPeer * peers);
    return Seconds((latency + kCollNetNet) * 1e-6) + wire / config.nominal_collnet.value;
  }
  if (algorithm == "direct") {
    const auto by = all_pairs(config, t.kind, t.bytes, t.ranks, t.systems);
    // Taken whenever it is there, whatever rings and trees would take.
    if (by == protocol && t.traffic_class == TrafficClass::kChain) return Seconds(0);
    return {};
  }
  if (algorithm == "pat") return nominal_far_first(config, protocol, t, wire);
  if (algorithm != "ring" && algorithm != "tree") return {};
  if (t.tree && !has_trees(config, protocol, t)) return {};
  return nominal_latency(config, protocol, t) + nominal_bytes(config, protocol, t, wire);
}

}  // namespace orrery
