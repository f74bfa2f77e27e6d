// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/events/simulation.h"
#include "sim/graph/costs.h"
#include "sim/network/flow_network.h"
#include "sim/replay/huge_pages.h"
#include "sim/replay/replay.h"
#include "sim/units/time.h"

namespace orrery {

/// Applies the link events of a run to its network, and keeps account of what links carried: of
/// rerouted transfers before, and of the capacities that links had.
class LinkSchedule {
 public:
  /// @throws std::logic_error for an event on an unknown link or transfer.
  explicit LinkSchedule(const Costs& costs);

  /// kNever after the last event.
  Picoseconds next_time() const {
    return next_ < order_.size() ? costs_.link_events[order_[next_]].time : kNever;
  }
  /// Applies the events that are due.
  /// @param ended tells how often each transfer has ended, `flights` its flights in the network
  template <class Ended, class Flights>
  void apply(Picoseconds now, FlowNetwork& network, const Ended& ended, const Flights& flights) {
    if (next_time() > now) return;
    const auto done = [&](std::uint32_t transfer) {
      double times = ended(transfer);
      for (const std::uint32_t flight : flights(transfer)) times += network.part_done(flight, now);
      return times;
    };
    count_busy(network, totals(done));
    for (; next_time() <= now; ++next_) {
      const LinkEvent& event = costs_.link_events[order_[next_]];
      network.set_capacity(event.link, event.capacity);
      for (const LinkEvent::Reroute& reroute : event.reroutes) {
        change_route(reroute, done(reroute.transfer));
        for (const std::uint32_t flight : flights(reroute.transfer))
          network.reroute({flight, reroute.loads, reroute.image}, now);
      }
    }
  }
  /// The way that a transfer takes instead of that of its costs; null: it has that.
  const LinkEvent::Reroute* way_of(std::uint32_t transfer) const;

  /// LinkLoad::bytes and LinkLoad::payload by link.
  struct Totals {
    std::vector<double> bytes, payload;
  };
  /// Totals of all transfers, each done `done(transfer)` times, parts of one included.
  template <class Done>
  Totals totals(const Done& done) const {
    Totals totals{std::vector<double>(costs_.links.size()),
                  std::vector<double>(costs_.links.size())};
    for (std::uint32_t t = 0; t < costs_.transfers.size(); ++t) add(t, done(t), totals);
    return totals;
  }
  /// Seconds that each link took for what it has carried, at the capacities that it had.
  std::vector<double> busy(const Totals& totals, const FlowNetwork& network) const;

  /// When the last event on a link was applied; 0: none was.
  Picoseconds last_change(std::uint32_t link) const;

 private:
  /// The way of a transfer after it changed.
  struct Way {
    const LinkEvent::Reroute* now = nullptr;
    double from = 0;               ///< transfers done before, the part of one included
    std::vector<LinkLoad> before;  ///< carried by then
  };
  void add(std::uint32_t transfer, double done, Totals& totals) const;
  void count_busy(const FlowNetwork& network, const Totals& totals);
  void change_route(const LinkEvent::Reroute& reroute, double done);

  const Costs& costs_;
  std::vector<std::size_t> order_;     ///< indices of costs_.link_events, by time
  std::size_t next_ = 0;               ///< index in order_ of the next event
  std::map<std::uint32_t, Way> ways_;  ///< ways of rerouted transfers
  // By link, up to the last event; empty before the first.
  std::vector<double> busy_s_, counted_bytes_;
};

/// What transfers in flight take of the device of each actor, and how far the kernels beside them
/// have come.
///
/// A kernel works off its time alone: at full speed while nothing is taken of its device, at 1 /
/// slowdown of it otherwise. Each has one event that counts, or kernels that follow one another
/// have one together. Where a load eases, so that the kernel ends earlier than that, another is
/// queued and counts instead; where one grows, the event finds the kernel unfinished and is queued
/// again.
class DeviceSharing {
 public:
  /// @param ends_kind of the events that it puts on the queue: their target is the stream
  DeviceSharing(std::size_t actors, std::uint32_t streams, SlowdownModel& slowdowns,
                EventQueue& queue, std::uint16_t ends_kind);

  /// A kernel that alone takes `duration` starts to work on a stream (actor * streams + stream of
  /// the actor), now or later. Its end has to be queued.
  void begin(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration);
  /// Another one takes the place of the kernel on a stream.
  void follow(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration);
  /// When a kernel would end that began on a stream at a time from now on, if no load changes.
  Picoseconds end_of(std::uint32_t stream, KernelId kernel, Picoseconds begin,
                     Picoseconds duration);
  /// End of the kernel on a stream, if no load changes.
  Picoseconds end(std::uint32_t stream) const { return work_[stream].end; }
  /// Queues the event that counts: the end of the kernel on a stream or, later, of one that
  /// follows.
  void queue_end(std::uint32_t stream, Picoseconds end);
  /// Queues the end of the kernel on a stream, which counts instead of what is queued.
  void replace_end(std::uint32_t stream);
  /// Whether an event is the one that counts.
  bool counts(const Event& event) const {
    return (devices_[event.target / streams_].running & bit(event.target)) != 0 &&
           event.argument == work_[event.target].event;
  }
  /// The event that counts is due: whether the kernel of its stream has ended.
  bool ends(const Event& event);
  /// What the kernel that has ended last on a stream took longer than alone.
  Picoseconds longer(std::uint32_t stream) const;

  /// Fetches what an event of a stream will touch.
  void prefetch(std::uint32_t stream) const {
    __builtin_prefetch(&work_[stream]);
    __builtin_prefetch(&devices_[stream / streams_]);
  }

  /// A transfer of the actor begins, or ends, to take `load`.
  void load(std::uint32_t actor, const DeviceLoad& load, bool begins, Picoseconds now);
  const DeviceLoad& load_of(std::uint32_t actor) const { return devices_[actor].load; }

 private:
  static constexpr std::uint32_t kFree = 0;  ///< the level without a load
  static constexpr std::uint32_t kUnknown = ~std::uint32_t{0};

  struct Device {
    DeviceLoad load;
    std::uint32_t level = kFree;  ///< index of `load` in slowdowns_, once a kernel asks
    std::uint32_t running = 0;    ///< streams with a kernel, a bit each
  };
  struct alignas(64) Work {
    KernelId kernel = 0;
    std::uint16_t event = 0;  ///< argument of the event that counts (65,536 ones later it recurs)
    Picoseconds begun = 0;
    Picoseconds duration = 0;  ///< time alone
    Picoseconds since = 0;     ///< `left` is as of then
    Picoseconds end = 0;       ///< if nothing changes
    Picoseconds queued = 0;    ///< time of the event that counts
    double left = 0;           ///< time alone that is left, in ps
    double slowdown = 1;
  };

  std::uint32_t bit(std::uint32_t stream) const { return 1U << stream % streams_; }
  double slowdown(Device& device, KernelId kernel);
  std::uint32_t level_of(const DeviceLoad& load);
  /// A kernel on a stream under today's load, and when it ends.
  void set(std::uint32_t stream, KernelId kernel, Picoseconds begin, Picoseconds duration,
           Work& work);
  static Picoseconds end_of(const Work& work);
  void change_speed(std::uint32_t stream, double slowdown, Picoseconds now);

  SlowdownModel& model_;
  EventQueue& queue_;
  std::uint16_t ends_kind_;
  std::uint32_t streams_;                           ///< streams per actor
  std::vector<Device, HugePages<Device>> devices_;  ///< devices by actor
  std::vector<Work, HugePages<Work>> work_;         ///< work by actor, then stream
  std::map<DeviceLoad, std::uint32_t> levels_;
  std::vector<std::vector<double>> slowdowns_;  ///< factors by level and kernel; 0: not asked for
};

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
