// SPDX-License-Identifier: Apache-2.0
#include "models/network/protocols.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace orrery {
namespace {

using namespace literals;

// NCCL: a channel is a block of up to 512 threads, and a thread moves 8 bytes of LL at a time.
constexpr Bytes kChannelPass = Bytes(512 * 8);
/// LL: a step with less leaves threads without a line; beyond, channels are added.
constexpr Bytes kLlSpread = Bytes(1.5 * 512 * 8);
/// Grouped sends and receives: LL up to 16 KiB a message; all channels from 1 MiB on in total
/// (NCCL src/enqueue.cc).
constexpr Bytes kP2pLlMessage = 16_KiB;
constexpr Bytes kP2pAllChannels = 1_MiB;
/// NCCL's buffer of a channel's connection: what is in flight between two ranks.
constexpr Bytes kWindow = 4_MiB;

constexpr double kLlWire = 2;  // 4 bytes of flag with 4 of data
constexpr double kLl128Wire = 128 / 120.0;
/// Of an all-reduce a rank's own share is read once for both halves, reduction and gather.
constexpr double kAllReduceOwnShare = 0.75;
/// What NCCL counts on of the links between systems with trees, whose inner nodes take from two
/// children (NCCL 5067397 src/graph/tuning.cc).
constexpr double kTreeRate = 0.85;
/// A message is posted and acknowledged: two steps of LL.
constexpr int kMessageHops = 2;

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

ProtocolCost ll_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.ll_efficiency.value, .scale_out = kLlWire};
  const Seconds spread = c.ll_spread.value * std::log2(t.ranks);
  cost.latency = c.launch.value + c.ll_hop.value * t.steps.scale_up +
                 c.net_ll.value * t.steps.scale_out + spread * std::min(1.0, t.share() / kLlSpread);
  // What all channels hold in one pass travels during the latency of its step.
  const BytesPerSecond rate = t.line * c.ll_efficiency.value;
  const Bytes pass = kChannelPass * c.channels;
  const Seconds covered = pass / rate * t.steps.scale_up;
  cost.latency -= std::min({covered, t.scale_up_time * cost.scale_up, cost.latency});
  const Bytes own = std::max(Bytes(0), t.share() - pass);
  cost.latency += own_share(t.kind) * (own / rate);
  return cost;
}

ProtocolCost ll128_cost(const ProtocolsConfig& c, const Traffic& t) {
  return {.latency = c.launch.value + c.ll128_setup.value + c.ll_hop.value * t.steps.scale_up +
                     c.net_ll128.value * t.steps.scale_out,
          .scale_up = 1 / c.ll128_efficiency.value,
          .scale_out = kLl128Wire};
}

ProtocolCost simple_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.simple_efficiency.value};
  if (sums_bytes(t)) cost.scale_up += c.byte_sums.value;
  cost.latency = c.launch.value + c.simple_setup.value + c.simple_hop.value * t.steps.scale_up +
                 c.net_simple.value * t.steps.scale_out +
                 c.own_copy.value * own_share(t.kind) * (t.share() / t.line);
  // Sent and received bytes share the cache.
  const Bytes beyond = std::max(Bytes(0), t.line * t.scale_up_time - t.cache / 2);
  cost.latency += c.beyond_cache.value * (beyond / t.line);
  return cost;
}

ProtocolCost in_switch_cost(const ProtocolsConfig& c, const Traffic& t) {
  const Bytes filled = std::min(t.bytes, kWindow * t.ranks);
  return {.latency = c.launch.value + c.nvls_setup.value + c.net_simple.value * t.steps.scale_out +
                     c.nvls_fill.value * (filled / t.line),
          .scale_up = 1 / c.nvls_efficiency.value};
}

ProtocolCost message_cost(const ProtocolsConfig& c, const Traffic& t) {
  const bool pair = t.kind == TransferKind::kSendReceive;
  const Bytes message = pair ? t.bytes : t.share();
  const double spread =
      std::min(1.0, message / kP2pLlMessage) + std::min(1.0, t.bytes / kP2pAllChannels);
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.p2p_efficiency.value};
  cost.latency = c.launch.value + c.p2p_peer.value * (t.ranks - 1) + c.ll_spread.value * spread;
  cost.latency += t.systems > 1 ? c.net_simple.value : c.ll_hop.value * kMessageHops;
  cost.latency += c.p2p_fill.value * (std::min(message, kWindow) / t.line);
  cost.latency += c.p2p_own_copy.value * own_share(t.kind) * (t.share() / t.line);
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
      return message_cost(config, traffic);
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
constexpr double kNvls = 25, kNvlsNet = 18;  // microseconds
// CollNetDirect, likewise: a step inside and what each peer adds, a step through the network.
constexpr double kCollNetHop = 3.7, kCollNetPeer = 0.4, kCollNetNet = 31;
constexpr double kCollNetRate = 0.85;             // share of the rate of Simple
constexpr double kRingLl128 = 0.92;               // share of the rate of Simple
constexpr double kTreeSimple = 0.92 * kTreeRate;  // likewise, of two trees
constexpr double kTreeLl = 1 / 3.8;               // likewise
constexpr double kPlateau = 1.4;                  // of Simple's latency, rings between systems
constexpr Bytes kPlateauFrom = 64_B;              // a channel's share of a rank

double nominal_share(const ProtocolsConfig& c, Protocol protocol, bool tree) {
  switch (protocol) {
    case Protocol::kLl:
      return tree ? kTreeLl : c.nominal_ll.value;
    case Protocol::kLl128:
      return tree ? kTreeSimple / kLl128Wire : kRingLl128;
    case Protocol::kSimple:
      return tree ? kTreeSimple : 1;
  }
  return 1;
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

std::optional<Seconds> nominal_time(const ProtocolsConfig& config, Protocol protocol,
                                    std::string_view algorithm, const Traffic& t) {
  const Seconds wire = std::max(t.scale_up_time / t.efficiency, t.scale_out_time);
  if (t.traffic_class == TrafficClass::kMessages) {
    // The library has one way to send messages: each to its receiver.
    if (algorithm != "direct" && algorithm != "send_receive") return {};
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
    return Seconds((latency + kCollNetNet) * 1e-6) + wire / kCollNetRate;
  }
  if (algorithm != "ring" && algorithm != "tree") return {};
  const Nominal& nominal = t.tree ? kTree : kRing;
  const auto p = static_cast<std::size_t>(protocol);
  double latency = nominal.base.at(p) + nominal.hop.at(p) * t.steps.scale_up +
                   nominal.net.at(p) * t.steps.scale_out;
  if (!t.tree && protocol == Protocol::kSimple && t.systems > 1 &&
      t.kind == TransferKind::kAllReduce &&
      t.share() / static_cast<double>(config.channels) >= kPlateauFrom)
    latency *= kPlateau;
  return Seconds(latency * 1e-6) + wire / nominal_share(config, protocol, t.tree);
}

}  // namespace orrery
