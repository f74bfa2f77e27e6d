// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/algorithm.h"
#include "sim/machine/protocols_config.h"
#include "sim/units/units.h"

namespace orrery {

/// NCCL's protocols: Simple hands over whole chunks behind a flag in memory; LL sends 4 bytes of
/// data with 4 bytes of flag, so that nobody waits for a flag; LL128 sends 120 bytes with 8.
enum class Protocol : std::uint8_t { kLl, kLl128, kSimple };
/// "ll", "ll128", "simple"
const char* to_string(Protocol protocol);
std::optional<Protocol> parse_protocol(std::string_view name);
/// The protocol that a user asks for; "auto" is none.
/// @throws config::KeyError for another name
std::optional<Protocol> forced_protocol(const std::string& name);

/// Whether the library chooses the algorithm on a scale-up topology: whether it was tuned for it.
bool chooses_algorithms_on(const ProtocolsConfig& protocols, const std::string& topology);

/// The protocol by which the library carries an all-reduce of that many bytes from each rank to
/// each other one and back (RCCL's MSCCL); empty where it has rings and trees alone.
std::optional<Protocol> all_pairs(const ProtocolsConfig& config, TransferKind kind, Bytes bytes,
                                  int ranks, int systems);

/// How an algorithm uses the links, which decides what its bytes and steps cost.
enum class TrafficClass : std::uint8_t {
  kChain,     ///< ranks forward to neighbours: rings, trees, ...
  kInSwitch,  ///< switches reduce and multicast
  kMessages,  ///< grouped sends and receives
  kOneShot,   ///< kernels that read and write the memory of peers
};
TrafficClass traffic_class(std::string_view algorithm, TransferKind kind);

/// What the price of a collective depends on besides the parameters of the protocols.
struct Traffic {
  TransferKind kind = TransferKind::kAllReduce;
  TrafficClass traffic_class = TrafficClass::kChain;
  bool tree = false;       ///< trees rather than rings between ranks or systems
  bool far_first = false;  ///< PAT: binomial trees of all chunks at once, far ranks first
  Bytes bytes;             ///< bytes as in Transfer
  int ranks = 2;           ///< ranks of the largest group
  int systems = 1;         ///< systems that the largest group spans
  StepCount steps;
  bool byte_sums = false;  ///< the reduction adds single bytes
  BytesPerSecond line;     ///< scale-up links of a rank, one way
  double efficiency = 1;   ///< share of it that NCCL counts on: of the fabric
  Seconds scale_up_time;   ///< largest payload of a scale-up link at its line rate
  Seconds scale_out_time;  ///< largest payload of a scale-out link at its payload rate
  /// Latency of this network above that of the one on which the library's constants were measured
  /// (ProtocolsConfig::net_latency).
  Seconds net_latency;

  Bytes share() const { return bytes / ranks; }
  /// What a rank sends to each other one.
  Bytes message() const { return kind == TransferKind::kSendReceive ? bytes : share(); }
};

/// A transfer and the protocol that carries it: all that its price depends on.
struct Carried {
  Protocol protocol = Protocol::kSimple;
  Traffic traffic;
};

/// What a protocol makes of a collective. Alone it takes
///   latency + max(scale_up x Traffic::scale_up_time, scale_out x Traffic::scale_out_time).
struct ProtocolCost {
  Seconds latency;
  double scale_up = 1;   ///< capacity at line rate used per byte of payload
  double scale_out = 1;  ///< payload capacity used per byte of payload

  Seconds total(const Traffic& traffic) const {
    return latency + std::max(scale_up * traffic.scale_up_time, scale_out * traffic.scale_out_time);
  }
};

/// The protocols that carry such traffic, LL first.
std::vector<Protocol> protocols_of(const ProtocolsConfig& config, const Traffic& traffic);

/// The price by our parameters; README.md has the equations.
ProtocolCost protocol_cost(const ProtocolsConfig& config, Protocol protocol,
                           const Traffic& traffic);

/// Whether the library chooses among its algorithms also that one, on groups of one rank a system:
/// NCCL's PAT.
bool library_adds(const ProtocolsConfig& protocols, std::string_view algorithm);

/// SMs that the kernel of a collective holds on each rank: NCCL starts a thread block for each
/// channel, none of which shares its SM with another kernel (NVIDIA/nccl issue 689), and as many
/// channels as the bytes keep busy.
int channels_of(const ProtocolsConfig& config, Protocol protocol, const Traffic& traffic);

/// The time that the library's own cost model expects (NCCL 5067397 and RCCL 0cbce2a,
/// src/graph/tuning.cc): what it chooses algorithm and protocol by, right or wrong. Empty where it
/// has no such algorithm.
std::optional<Seconds> nominal_time(const ProtocolsConfig& config, Protocol protocol,
                                    std::string_view algorithm, const Traffic& traffic);

}  // namespace orrery
