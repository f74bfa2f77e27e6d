// SPDX-License-Identifier: Apache-2.0
#include "models/transfers/protocols.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "models/transfers/protocol_steps.h"
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
/// An all-reduce reads a rank's own share once for both halves, reduction and gather.
constexpr double kAllReduceOwnShare = 0.75;
/// A buffer is offered before it is written, and this is acknowledged: two steps of LL.
constexpr int kHandshake = 2;
double own_share(TransferKind kind) {
  using enum TransferKind;
  if (kind == kAllReduce) return kAllReduceOwnShare;
  return is_any(kind,
                {kAllGather, kReduceScatter, kAllToAll, kGather, kScatter, kDispatch, kCombine})
             ? 1
             : 0;
}

bool sums_bytes(const Traffic& t) {
  using enum TransferKind;
  return t.byte_sums && is_any(t.kind, {kAllReduce, kReduce, kReduceScatter});
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
  return t.scale_out_time * cost.scale_out / tree_rate(t);
}

/// Takes from the latency what links inside a system carry during it. Where those between systems
/// are busy for longer, nothing is won by that.
void cover(Seconds covered, const Traffic& t, ProtocolCost& cost) {
  const Seconds inside = t.scale_up_time * cost.scale_up - time_between(cost, t);
  cost.latency -= std::max(Seconds(0), std::min({covered, inside, cost.latency}));
}

/// What all channels hold in one pass of LL.
Bytes ll_pass(const ProtocolsConfig& c) { return kLlBusy * kLlChannelPass * c.channels; }

ProtocolCost ll_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.ll_efficiency.value, .scale_out = kLlWire};
  const Seconds inside = c.ll_hop.value * t.steps.scale_up + written(c, t);
  cost.latency = c.launch.value + posted(c, inside, 1, t) + crossings(c.net_ll.value, t) +
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
  return {
      .latency = c.launch.value + c.ll128_setup.value + inside + crossings(c.net_ll128.value, t),
      .scale_up = 1 / c.ll128_efficiency.value,
      .scale_out = kLl128Wire};
}

ProtocolCost simple_cost(const ProtocolsConfig& c, const Traffic& t) {
  ProtocolCost cost{.latency = {}, .scale_up = 1 / c.simple_efficiency.value};
  // A step of n waits for its first slice; the second one is sent meanwhile.
  const Seconds hops = posted(c, c.simple_hop.value * t.steps.scale_up, kSimplePosts, t);
  const Seconds sent = std::max(t.scale_up_time * cost.scale_up, time_between(cost, t));
  const Seconds meanwhile = sent / kSlicesAChunk;
  const Seconds between = t.far_first ? crossings(c.net_simple.value * kFarFirstStep, t) +
                                            kFarFirstRank * static_cast<double>(t.ranks)
                                      : crossings(c.net_simple.value, t);
  cost.latency =
      c.launch.value + c.simple_setup.value + std::max(Seconds(0), hops - meanwhile) + between;
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
  return {.latency = c.launch.value + c.nvls_setup.value + crossings(c.net_simple.value, t) +
                     c.nvls_fill.value * (filled / t.line),
          .scale_up = 1 / c.nvls_efficiency.value};
}

/// Launch, peers and the route of a message, however it is carried.
Seconds message_latency(const ProtocolsConfig& c, const Traffic& t) {
  const Seconds route =
      t.systems > 1 ? c.net_simple.value + t.net_latency : c.ll_hop.value * kHandshake;
  return c.launch.value + c.p2p_peer.value * (t.ranks - 1) + route;
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

std::optional<Protocol> all_pairs(const ProtocolsConfig& config, TransferKind kind, Bytes bytes,
                                  int ranks, int systems) {
  if (kind != TransferKind::kAllReduce || systems > 1 || ranks != config.all_pairs_ranks) return {};
  if (bytes <= config.all_pairs_ll.value) return Protocol::kLl;
  if (bytes <= config.all_pairs_simple.value) return Protocol::kSimple;
  return {};
}

bool chooses_algorithms_on(const ProtocolsConfig& protocols, const std::string& topology) {
  const std::vector<std::string>& known = protocols.topologies;
  return std::find(known.begin(), known.end(), topology) != known.end();
}

TrafficClass traffic_class(std::string_view algorithm, TransferKind kind) {
  using enum TransferKind;
  if (is_any(kind, {kAllToAll, kGather, kScatter, kSendReceive, kDispatch, kCombine}))
    return TrafficClass::kMessages;
  if (algorithm.starts_with("nvls") || algorithm == "sharp") return TrafficClass::kInSwitch;
  if (algorithm == "direct" || algorithm == "one_shot" || algorithm == "two_shot")
    return TrafficClass::kOneShot;
  return TrafficClass::kChain;
}

std::vector<Protocol> protocols_of(const ProtocolsConfig& config, const Traffic& traffic) {
  if (traffic.traffic_class == TrafficClass::kMessages) return {Protocol::kLl, Protocol::kSimple};
  if (traffic.traffic_class != TrafficClass::kChain || traffic.far_first)
    return {Protocol::kSimple};
  std::vector<Protocol> carried;
  if (config.ll) carried.push_back(Protocol::kLl);
  if (config.ll128) carried.push_back(Protocol::kLl128);
  carried.push_back(Protocol::kSimple);
  return carried;
}

ProtocolCost protocol_cost(const ProtocolsConfig& config, Protocol protocol,
                           const Traffic& traffic) {
  ProtocolCost cost = cost_of_class(config, protocol, traffic);
  const double reach = tree_reach(protocol, traffic);
  cost.scale_up /= reach;
  cost.scale_out /= reach * tree_rate(traffic);
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

}  // namespace orrery
