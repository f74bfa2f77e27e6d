// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "sim/events/simulation.h"
#include "sim/network/flow_network.h"
#include "sim/replay/device_sharing.h"
#include "sim/replay/link_schedule.h"
#include "sim/replay/replay.h"

namespace orrery {

/// Carries out kernels and transfers in time: the events of one replay, links that transfers share,
/// and devices that transfers take from kernels. A derived class says what starts when:
/// ProgramReplayer by the order of streams, GraphReplayer by dependencies.
///
/// A flight is a transfer on its way. Several flights of one transfer may be under way at once.
/// What happens at one time happens in a fixed order: ends of flights by id, then link events as
/// listed, then events as they were pushed, then what can start.
class Replayer : public Agenda {
 public:
  Picoseconds next_time() const final;
  void execute(Picoseconds now) final;

  bool finished() const { return left_ == 0; }
  /// Names a transfer that stands still and the link that holds it up, by number without a
  /// topology; empty if there is none.
  std::string stall_report(const Topology* topology) const;

 protected:
  /// Kinds of events. Those from kOwnEvents on are for a derived class.
  enum EventKind : std::uint16_t { kComputeEnd, kLatencyEnd, kOwnEvents };

  /// @param network the links before anything has crossed them; flights are its transfers
  Replayer(const Costs& costs, const ReplayOptions& options, FlowNetwork network);

  /// An event of another kind than kLatencyEnd is due.
  virtual void event_due(const Event& event) = 0;
  /// Fetches what an event will touch: with 100,000 ranks none of it is in a cache.
  virtual void prefetch(const Event& event) const = 0;
  /// Starts what has become possible at a time, once all that ends then has ended.
  virtual void start_ready(Picoseconds /*now*/) {}
  /// The last bytes of a flight have come.
  virtual void flight_ended(std::uint32_t flight, Picoseconds now) = 0;
  /// A flight begins or ends to take its share of the devices of its ranks.
  virtual void load_devices(std::uint32_t flight, Picoseconds now, bool begins) = 0;
  /// Flights of a transfer, by its number in Costs::transfers.
  virtual std::span<const std::uint32_t> flights_of(std::uint32_t transfer) const = 0;
  /// How many flights of a transfer have ended.
  virtual double ended(std::uint32_t transfer) const = 0;
  /// The transfer of a flight, for errors.
  virtual std::string name_of(std::uint32_t flight) const = 0;

  /// All have come to a transfer: it takes its latency, then its bytes.
  void begin_flight(std::uint32_t flight, Picoseconds latency, Picoseconds now);
  /// A transfer of the actor begins, or ends, to take `load` of its device.
  void load_device(std::uint32_t actor, const DeviceLoad& load, Picoseconds now, bool begins);
  /// What links have carried.
  void add_links(ReplayResult& result) const;

  const Costs& costs_;
  Timeline* timeline_;     ///< null: nobody watches
  UseObserver* observer_;  ///< null: nobody asks
  FlowNetwork network_;
  LinkSchedule link_schedule_;
  EventQueue queue_;
  std::unique_ptr<DeviceSharing> sharing_;  ///< null: transfers do not slow kernels
  std::size_t left_ = 0;                    ///< what has to end before the replay does
  std::uint64_t events_ = 0;
  std::uint64_t operators_ = 0;

 private:
  void begin_bytes(std::uint32_t flight, Picoseconds now);
  void end_flight(std::uint32_t flight, Picoseconds now);
};

}  // namespace orrery
