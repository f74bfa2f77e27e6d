// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/protocols.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/config/diagnostics.h"

namespace orrery {
namespace {

using namespace literals;

// NCCL: a channel is a block of up to 512 threads, and a thread moves 8 bytes of LL at a time.
constexpr Bytes kLlChannelPass = 512 * Bytes(8);
/// Share of the threads that a step of LL keeps busy. Estimate.
constexpr double kLlBusy = 0.75;
/// LL: a step with less leaves threads without a line; beyond, channels are added. Estimate.
constexpr Bytes kLlSpread = 2 * kLlChannelPass;
/// Simple: a chunk goes in two slices of up to 1 MiB. While one is sent, the other one is under way
/// (NCCL src/include/collectives.h: slices of two steps, chunks of four).
constexpr Bytes kSlice = 1_MiB;
constexpr double kSlicesAChunk = 2;
/// Grouped sends and receives: chunks of 512 KiB over up to 32 channels (NCCL src/enqueue.cc).
constexpr Bytes kMessageChunks = 32 * Bytes(512_KiB);
/// Least message whose parts keep the channels to its peer busy: four of 4 KiB.
constexpr Bytes kMessageSpread = 16_KiB;
/// NCCL's buffer of a channel's connection: what is in flight between two ranks.
constexpr Bytes kWindow = 4_MiB;

/// Fewer bytes a channel are not worth its block: 512 threads with 64 bytes each of Simple, 8 of LL
/// and LL128, which rings multiply by the ranks (NCCL src/enqueue.cc, src/graph/tuning.cc).
constexpr Bytes kSimpleBlock = Bytes(512 * 64);
constexpr Bytes kLlBlock = Bytes(512 * 8);

constexpr double kLlWire = 2;  // 4 bytes of flag with 4 of data
constexpr double kLl128Wire = 128 / 120.0;
/// An all-reduce reads a rank's own share once for both halves, reduction and gather.
constexpr double kAllReduceOwnShare = 0.75;
/// What NCCL counts on of the links between systems with trees, whose inner nodes take from two
/// children (NCCL 5067397 src/graph/tuning.cc).
constexpr double kTreeRate = 0.85;
/// A buffer is offered before it is written, and this is acknowledged: two steps of LL.
constexpr int kHandshake = 2;
/// Messages between systems that a step of Simple posts (NCCL 2.28.3 src/graph/tuning.cc).
constexpr int kSimplePosts = 3;

double own_share(TransferKind kind) {
  switch (kind) {
    case TransferKind::kAllReduce:
      return kAllReduceOwnShare;
    case TransferKind::kAllGather:
    case TransferKind::kReduceScatter:
    case TransferKind::kAllToAll:
    case TransferKind::kGather:
    case TransferKind::kScatter:
    case TransferKind::kDispatch:
    case TransferKind::kCombine:
      return 1;
    case TransferKind::kBroadcast:
    case TransferKind::kReduce:
    case TransferKind::kBarrier:
    case TransferKind::kSendReceive:
      return 0;
  }
  return 0;
}

bool sums_bytes(const Traffic& t) {
  return t.byte_sums && (t.kind == TransferKind::kAllReduce || t.kind == TransferKind::kReduce ||
                         t.kind == TransferKind::kReduceScatter);
}

/// For results of others that a rank writes: by trees in the steps of their way down, in one system
/// n-1 as well.
Seconds written(const ProtocolsConfig& c, const Traffic& t) {
  const bool one = t.kind == TransferKind::kReduceScatter || t.kind == TransferKind::kReduce;
  const int steps = t.tree ? (t.steps.scale_up + t.steps.scale_out) / 2 : t.ranks - 1;
  return c.ll_write.value * (one ? 1 : steps) * std::min(1.0, t.share() / kLlSpread);
}

/// What the links between systems take, of trees by their rate.
Seconds time_between(const ProtocolCost& cost, const Traffic& t) {
  return t.scale_out_time * cost.scale_out / (t.tree ? kTreeRate : 1.0);
}

/// Takes from the latency what links inside a system carry during it. Where those between systems
/// are busy for longer, nothing is won by that.
void cover(Seconds covered, const Traffic& t, ProtocolCost& cost) {
  const Seconds inside = t.scale_up_time * cost.scale_up - time_between(cost, t);
  cost.latency -= std::max(Seconds(0), std::min({covered, inside, cost.latency}));
}

/// The steps inside the systems of a ring: each posts a message between them if it spans several.
Seconds posted(const ProtocolsConfig& c, Seconds inside, int posts, const Traffic& t) {
  if (t.tree || t.systems == 1) return inside;
  return std::max(inside, c.net_post.value * posts * t.steps.scale_up);
}

/// What all channels hold in one pass of LL.
Bytes ll_pass(const ProtocolsConfig& c) { return kLlBusy * kLlChannelPass * c.channels; }

ProtocolCost ll_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.ll_efficiency.value, .scale_out = kLlWire};
  const Seconds inside = c.ll_hop.value * t.steps.scale_up + written(c, t);
  cost.latency = c.launch.value + posted(c, inside, 1, t) + c.net_ll.value * t.steps.scale_out +
                 c.ll_spread.value * std::min(1.0, t.share() / kLlSpread);
  // One pass of all channels travels during the latency of its step.
  const BytesPerSecond rate = t.line * c.ll_efficiency.value;
  const Bytes pass = ll_pass(c);
  cover(pass / rate * t.steps.scale_up, t, cost);
  const Bytes own = std::max(Bytes(0), t.share() - pass);
  cost.latency += own_share(t.kind) * (own / rate);
  return cost;
}

ProtocolCost ll128_cost(const ProtocolsConfig& c, const Traffic& t) {
  // What the few ranks of one system write is part of the setup that was fitted to them.
  const Seconds writes = t.systems > 1 ? written(c, t) : Seconds(0);
  const Seconds inside = posted(c, c.ll_hop.value * t.steps.scale_up + writes, 1, t);
  return {.latency =
              c.launch.value + c.ll128_setup.value + inside + c.net_ll128.value * t.steps.scale_out,
          .scale_up = 1 / c.ll128_efficiency.value,
          .scale_out = kLl128Wire};
}

ProtocolCost simple_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.simple_efficiency.value};
  // A step of n waits for its first slice; the second one is sent meanwhile.
  const Seconds hops = posted(c, c.simple_hop.value * t.steps.scale_up, kSimplePosts, t);
  const Seconds sent = std::max(t.scale_up_time * cost.scale_up, time_between(cost, t));
  const Seconds meanwhile = sent / kSlicesAChunk;
  cost.latency = c.launch.value + c.simple_setup.value + std::max(Seconds(0), hops - meanwhile) +
                 c.net_simple.value * t.steps.scale_out;
  // Reductions end in the rank's own memory; all others write into the buffers of their peers.
  const bool offered = t.kind != TransferKind::kReduceScatter && t.kind != TransferKind::kReduce;
  if (offered) cost.latency += c.ll_hop.value * kHandshake;
  const double sums = sums_bytes(t) ? c.byte_sums.value : 0;
  cost.latency += (c.own_copy.value * own_share(t.kind) + sums) * (t.share() / t.line);
  const Bytes filled = std::min(t.line * t.scale_up_time, kSlice * c.channels);
  cost.latency += c.fill.value * (filled / t.line);
  return cost;
}

ProtocolCost in_switch_cost(const ProtocolsConfig& c, const Traffic& t) {
  const Bytes filled = std::min(t.bytes, kWindow * t.ranks);
  return {.latency = c.launch.value + c.nvls_setup.value + c.net_simple.value * t.steps.scale_out +
                     c.nvls_fill.value * (filled / t.line),
          .scale_up = 1 / c.nvls_efficiency.value};
}

/// Launch, peers and the way of a message, however it is carried.
Seconds message_latency(const ProtocolsConfig& c, const Traffic& t) {
  const Seconds way = t.systems > 1 ? c.net_simple.value : c.ll_hop.value * kHandshake;
  return c.launch.value + c.p2p_peer.value * (t.ranks - 1) + way;
}

ProtocolCost ll_message_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = message_latency(c, t),
                    .scale_up = 1 / c.ll_efficiency.value,
                    .scale_out = kLlWire};
  // Those who send and those who receive.
  cost.latency += 2 * c.ll_spread.value * std::min(1.0, t.message() / kMessageSpread);
  cover(ll_pass(c) / (t.line * c.ll_efficiency.value), t, cost);
  return cost;
}

ProtocolCost simple_message_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = message_latency(c, t), .scale_up = 1 / c.p2p_efficiency.value};
  cost.latency += c.p2p_setup.value + c.fill.value * (std::min(t.bytes, kMessageChunks) / t.line) +
                  c.p2p_own_copy.value * own_share(t.kind) * (t.share() / t.line);
  return cost;
}

ProtocolCost one_shot_cost(const ProtocolsConfig& c, const Traffic& t) {
  return {.latency = c.one_shot_launch.value * std::max(1, t.steps.scale_up),
          .scale_up = 1 / c.one_shot_efficiency.value};
}

/// The price without what trees between systems lose.
ProtocolCost cost_of_class(const ProtocolsConfig& config, Protocol protocol,
                           const Traffic& traffic) {
  switch (traffic.traffic_class) {
    case TrafficClass::kInSwitch:
      return in_switch_cost(config, traffic);
    case TrafficClass::kMessages:
      return protocol == Protocol::kLl ? ll_message_cost(config, traffic)
                                       : simple_message_cost(config, traffic);
    case TrafficClass::kOneShot:
      return one_shot_cost(config, traffic);
    case TrafficClass::kChain:
      break;
  }
  switch (protocol) {
    case Protocol::kLl:
      return ll_cost(config, traffic);
    case Protocol::kLl128:
      return ll128_cost(config, traffic);
    case Protocol::kSimple:
      break;
  }
  return simple_cost(config, traffic);
}

/// Constants of NCCL's tuner, by protocol: LL, LL128, Simple.
struct Nominal {
  std::array<double, 3> base, hop, net;  // microseconds
};
constexpr Nominal kRing = {{6.6, 14.0, 8.4}, {0.6, 1.9, 3.4}, {2.7, 4.0, 14.0}};
constexpr Nominal kTree = {{6.8, 14.0, 8.4}, {0.6, 1.25, 4.0}, {5.0, 8.5, 14.0}};
constexpr Nominal kPcieRing = {kRing.base, {1.0, 2.5, 5.7}, kRing.net};  // not NVLinks alone
constexpr Nominal kPcieTree = {kTree.base, {1.0, 1.9, 4.0}, kTree.net};
constexpr double kNvls = 25, kNvlsNet = 18;  // microseconds
// CollNetDirect, likewise: a step inside and what each peer adds, a step through the network.
constexpr double kCollNetHop = 3.7, kCollNetPeer = 0.4, kCollNetNet = 31;
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

double tree_reaches(Protocol protocol, const Traffic& t) {
  if (t.systems == 1 || t.bytes < kTreeFrom) return 1;
  const auto power = static_cast<std::size_t>(std::log2(t.bytes / kTreeFrom));
  return power < kTreeSizes ? kTreeReaches.at(static_cast<std::size_t>(protocol)).at(power) : 1;
}

double nominal_share(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
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
  const bool parts = t.kind == TransferKind::kAllGather || t.kind == TransferKind::kReduceScatter;
  return parts ? t.bytes - t.share() : t.bytes;
}

/// The bytes of rings and trees. Between systems LL has a limit of its own.
Seconds nominal_bytes(const ProtocolsConfig& c, Protocol protocol, const Traffic& t, Seconds wire) {
  Seconds time = wire / nominal_share(c, protocol, t);
  if (protocol == Protocol::kLl && t.systems > 1) {
    const auto& limit = t.systems == 2 ? c.nominal_ll_pair : c.nominal_ll_systems;
    time = std::max(time, bus_bytes(t) / (limit.value * (t.tree ? kTreeRate : 1.0)));
  }
  return t.tree ? time / tree_reaches(protocol, t) : time;
}

Seconds nominal_latency(const ProtocolsConfig& c, Protocol protocol, const Traffic& t) {
  const bool pcie = c.nominal_links == NominalLinks::kPcie;
  const Nominal& nominal = t.tree ? (pcie ? kPcieTree : kTree) : (pcie ? kPcieRing : kRing);
  const auto p = static_cast<std::size_t>(protocol);
  const Seconds hops = Seconds(nominal.hop.at(p) * 1e-6) * t.steps.scale_up;
  const bool simple = protocol == Protocol::kSimple;
  double latency = nominal.base.at(p) + posted(c, hops, simple ? kSimplePosts : 1, t).base() * 1e6 +
                   nominal.net.at(p) * t.steps.scale_out;
  if (!t.tree && simple && t.systems > 1 && t.kind == TransferKind::kAllReduce &&
      t.share() / static_cast<double>(c.channels) >= kPlateauFrom)
    latency *= kPlateau;
  return Seconds(latency * 1e-6);
}

}  // namespace

const char* to_string(Protocol protocol) {
  constexpr std::array<const char*, 3> kNames = {"ll", "ll128", "simple"};
  return kNames.at(static_cast<std::size_t>(protocol));
}

std::optional<Protocol> parse_protocol(std::string_view name) {
  for (const Protocol protocol : {Protocol::kLl, Protocol::kLl128, Protocol::kSimple})
    if (name == to_string(protocol)) return protocol;
  return std::nullopt;
}

std::optional<Protocol> forced_protocol(const std::string& name) {
  if (name == "auto") return {};
  const auto protocol = parse_protocol(name);
  if (!protocol)
    throw config::KeyError("collective.protocol",
                           "there is no protocol '" + name + "'; allowed: auto, ll, ll128, simple");
  return protocol;
}

bool chooses_algorithms_on(const ProtocolsConfig& protocols, const std::string& topology) {
  const std::vector<std::string>& known = protocols.topologies;
  return std::find(known.begin(), known.end(), topology) != known.end();
}

TrafficClass traffic_class(std::string_view algorithm, TransferKind kind) {
  switch (kind) {
    case TransferKind::kAllToAll:
    case TransferKind::kGather:
    case TransferKind::kScatter:
    case TransferKind::kSendReceive:
    case TransferKind::kDispatch:
    case TransferKind::kCombine:
      return TrafficClass::kMessages;
    default:
      break;
  }
  if (algorithm.starts_with("nvls") || algorithm == "sharp") return TrafficClass::kInSwitch;
  if (algorithm == "direct" || algorithm == "one_shot" || algorithm == "two_shot")
    return TrafficClass::kOneShot;
  return TrafficClass::kChain;
}

Seconds ProtocolCost::total(const Traffic& traffic) const {
  return latency + std::max(scale_up * traffic.scale_up_time, scale_out * traffic.scale_out_time);
}

std::vector<Protocol> protocols_of(const ProtocolsConfig& config, TrafficClass traffic_class) {
  if (traffic_class == TrafficClass::kMessages) return {Protocol::kLl, Protocol::kSimple};
  if (traffic_class != TrafficClass::kChain) return {Protocol::kSimple};
  if (!config.ll128) return {Protocol::kLl, Protocol::kSimple};
  return {Protocol::kLl, Protocol::kLl128, Protocol::kSimple};
}

ProtocolCost protocol_cost(const ProtocolsConfig& config, Protocol protocol,
                           const Traffic& traffic) {
  ProtocolCost cost = cost_of_class(config, protocol, traffic);
  if (traffic.tree) cost.scale_out /= kTreeRate;
  return cost;
}

int channels_of(const ProtocolsConfig& config, Protocol protocol, const Traffic& t) {
  int most = config.channels;
  switch (t.traffic_class) {
    case TrafficClass::kChain:
      break;
    case TrafficClass::kInSwitch:
      most = config.in_switch_channels;
      break;
    case TrafficClass::kOneShot:
      return config.one_shot_blocks;
    case TrafficClass::kMessages:
      if (t.systems > 1) most = std::min(most, config.net_peer_channels * (t.ranks - 1));
      break;
  }
  Bytes block = protocol == Protocol::kSimple ? kSimpleBlock : kLlBlock;
  if (protocol == Protocol::kLl && !t.tree) block *= t.ranks;
  const double busy = std::floor(t.bytes / block);
  return std::min(most, static_cast<int>(std::clamp(busy, 1.0, static_cast<double>(most))));
}

std::optional<Seconds> nominal_time(const ProtocolsConfig& config, Protocol protocol,
                                    std::string_view algorithm, const Traffic& t) {
  const Seconds wire = std::max(t.scale_up_time / t.efficiency, t.scale_out_time);
  if (t.traffic_class == TrafficClass::kMessages) {
    // The library has one way to send messages: each to its receiver.
    if (algorithm != "direct" && algorithm != "send_receive") return {};
    // Connections between systems have no buffers for LL.
    const bool ll = t.systems == 1 && t.message() <= config.p2p_ll_limit.value;
    if (ll != (protocol == Protocol::kLl)) return {};
    return wire;
  }
  if (algorithm == "nvls") {
    // Gathers and scatters only from buffers that are registered with the library.
    if (t.kind != TransferKind::kAllReduce || t.byte_sums) return {};
    if (config.in_switch_ranks == 0 || t.ranks < config.in_switch_ranks) return {};
    const Seconds line = t.bytes / (t.line * t.efficiency);
    return Seconds((kNvls + kNvlsNet * std::min(1, t.steps.scale_out)) * 1e-6) +
           line / config.nominal_nvls.value;
  }
  if (algorithm == "sharp") {
    const int peers = std::max(0, t.ranks / t.systems - 1);
    const double latency = 2 * (kCollNetHop * std::min(1, peers) + kCollNetPeer * peers);
    return Seconds((latency + kCollNetNet) * 1e-6) + wire / config.nominal_collnet.value;
  }
  if (algorithm != "ring" && algorithm != "tree") return {};
  // Trees get 0.46 of the rate of a channel, rings n / 2 (n - 1): in one box of cards rings win.
  if (t.tree && config.nominal_links == NominalLinks::kPcie && t.systems == 1) return {};
  return nominal_latency(config, protocol, t) + nominal_bytes(config, protocol, t, wire);
}

}  // namespace orrery
