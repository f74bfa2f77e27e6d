// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/events/simulation.h"
#include "sim/units/time.h"
#include "sim/units/units.h"

namespace orrery {

/// A link of one direction between two ports.
struct PacketLink {
  BytesPerSecond rate;
  /// From the first bit out of one port to the first bit that the next switch can send on.
  Picoseconds latency = 0;
};

/// One message over a fixed route; consecutive links meet in a switch.
struct PacketFlow {
  std::vector<std::uint32_t> route;
  std::uint64_t bytes = 0;
  Picoseconds start = 0;
};

struct PacketOptions {
  std::uint32_t mtu = 4096;   ///< most payload of a packet, in bytes
  std::uint32_t header = 64;  ///< bytes on the wire beside the payload
  /// Packets that an input port keeps of each flow; 0: as many as a link needs to stay busy while
  /// its credits travel.
  std::uint32_t buffer = 0;
};

/// Links shared packet by packet: the reference for FlowNetwork, for small cases (one event per
/// packet and hop).
///
/// Switches cut through: a packet leaves as soon as its header is there, the output is free and the
/// next input port has room for all of it; where the output is faster, late enough not to run dry.
/// Room is known by credits, which come back over the link with its latency when the packet has
/// left. Input ports keep a queue per flow, with credits of its own, and outputs serve flows in
/// turn, one packet each: with a queue per flow and credits hop by hop, that shares links max-min
/// fairly (Hahne, "Round-robin scheduling for max-min fairness in data networks", IEEE JSAC 9(7),
/// 1991). With one queue for all flows a slow flow blocks those behind it, and no rule of fairness
/// holds. Receivers take what comes at line rate.
///
/// Deterministic: times are integer picoseconds, and at one time all packets and credits arrive
/// before links choose, in order of their index.
class PacketNetwork final : public Agenda {
 public:
  /// @throws std::logic_error for an unknown link, an empty route, a route that visits a link
  /// twice, a flow without bytes, a rate that is not positive and finite, or an MTU of 0.
  PacketNetwork(const std::vector<PacketLink>& links, const std::vector<PacketFlow>& flows,
                const PacketOptions& options = {});

  Picoseconds next_time() const override { return queue_.top_time(); }
  void execute(Picoseconds now) override;

  /// Runs all, without SystemC; when the last byte of each flow arrived.
  std::vector<Picoseconds> run();
  /// When the last byte of a flow arrived; kNever before.
  Picoseconds end(std::uint32_t flow) const { return flows_[flow].end; }
  std::uint64_t events() const { return events_; }

 private:
  enum EventKind : std::uint16_t { kArrived, kLinkFree, kCredit, kDelivered };

  /// A flow at the output to one link of its route.
  struct Hop {
    std::uint32_t flow = 0;
    std::uint32_t link = 0;
    std::uint32_t credits = 0;  ///< packets that the next input port has room for
    std::uint64_t arrived = 0;  ///< packets whose header is here
    std::uint64_t sent = 0;
    bool first = false, last = false;
  };
  struct Flow {
    std::uint64_t packets = 0;
    std::uint64_t last_bytes = 0;  ///< bytes of the last packet, header included
    std::uint32_t first_hop = 0;
    Picoseconds end = kNever;
  };
  struct Link {
    double rate = 0;
    Picoseconds latency = 0;
    std::vector<std::uint32_t> hops;  ///< hops that send over the link
    std::size_t turn = 0;             ///< index in `hops` of the one that is asked first
    std::uint32_t sending = kNobody;  ///< hop that the link sends for
    bool woken = false;               ///< the link is in woken_
  };
  static constexpr std::uint32_t kNobody = ~std::uint32_t{0};

  void add_flow(const PacketFlow& flow);
  std::uint32_t credits(const Link& link) const;
  void handle(const Event& event, Picoseconds now);
  void wake(std::uint32_t link);
  void choose(std::uint32_t link, Picoseconds now);
  void send(std::uint32_t hop, Picoseconds now);
  std::uint64_t wire_bytes(const Hop& hop) const;
  static Picoseconds time_on(const Link& link, std::uint64_t bytes);

  PacketOptions options_;
  std::vector<Link> links_;
  std::vector<Flow> flows_;
  std::vector<Hop> hops_;  ///< hops of each flow in a row
  std::vector<std::uint32_t> woken_;
  EventQueue queue_;
  std::uint64_t events_ = 0;
};

}  // namespace orrery
