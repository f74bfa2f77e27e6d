// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "sim/network/flow_network.h"
#include "sim/serving/instance.h"
#include "sim/serving/router.h"
#include "sim/units/units.h"

namespace orrery {

/// What keys and values of a request are, on all ranks that hold them together.
struct KvSize {
  Bytes token;                     ///< bytes of each token
  Bytes window{};                  ///< bytes of layers with sliding windows, once those are full
  std::int64_t window_tokens = 0;  ///< tokens that fill them; 0: there are none

  Bytes of(std::int64_t tokens) const;
};

/// How an instance is joined to the fabric that keys and values cross.
struct KvPort {
  BytesPerSecond bandwidth;  ///< rate of all ranks that hold a request, one way
  Seconds latency{};
  KvSize size;  ///< size of what it takes
};

/// Requests that go from instances of prompts to instances of answers. A request waits, its cache
/// kept where it was computed, until the instance that is to go on has blocks for it; then its keys
/// and values cross the fabric, but for what is kept of its prompt already. All that crosses at a
/// time shares the ports of both ends max-min fairly; the fabric between is taken not to be
/// narrower than they are.
class Handover {
 public:
  /// @param instances outlive it
  /// @param router outlives it; sees those that take answers
  /// @param ports of each instance; each data parallel rank of one has its own
  Handover(std::vector<Instance>& instances, Router& router, const std::vector<KvPort>& ports);

  /// A request has its first token: it goes to an instance that takes answers.
  /// @throws std::overflow_error for one that fits nowhere there
  void leave(Instance::Leaving left, std::size_t from, Picoseconds now);
  /// Blocks of an instance may have become free.
  void look_for_room(std::size_t instance, Picoseconds now);
  /// Shares the fabric among all that cross it now. @return when the next has crossed; kNever: none
  Picoseconds settle(Picoseconds now);
  /// What has crossed by now, and when it is there: later than that by the latency.
  struct Crossed {
    std::uint32_t slot = 0;
    Picoseconds at = 0;
  };
  /// Those whose last byte is sent at `now`.
  std::vector<Crossed> crossed(Picoseconds now);
  /// A request whose cache has come.
  struct Moved {
    std::int64_t request = 0;
    std::size_t from = 0, to = 0;  ///< both ends, which may go on
    Picoseconds since = 0;         ///< when it had its first token
  };
  Moved arrive(std::uint32_t slot, Picoseconds now);

  /// The router that sends requests to decode instances.
  Router& router() { return router_; }
  /// Bytes that have crossed, and the time that requests took to, waits for room included.
  Bytes moved() const { return moved_; }
  const Histogram& times() const { return times_; }

 private:
  struct Move {
    Instance::Leaving left;  ///< where it comes from
    std::size_t from = 0, to = 0;
    RequestState state;       ///< where it goes
    Instance::Slot slot = 0;  ///< place there
    std::uint32_t transfer = 0;
    Picoseconds since = 0;
  };

  bool begin(std::uint32_t slot, Picoseconds now);
  std::uint32_t link_of(std::size_t instance, Instance::Slot slot) const;

  std::vector<Instance>& instances_;
  Router& router_;
  std::vector<KvPort> ports_;
  std::vector<std::size_t> takers_;         ///< instances that take answers
  std::vector<std::uint32_t> first_links_;  ///< first link of each instance
  FlowNetwork fabric_;
  std::vector<Move> moves_;
  std::vector<std::uint32_t> spare_;                ///< slots without a move
  std::vector<std::deque<std::uint32_t>> waiting_;  ///< moves that wait for room, by instance
  std::vector<std::uint32_t> slot_of_;              ///< moves by transfer
  std::vector<std::uint32_t> weightless_;           ///< moves without bytes
  std::vector<InstanceView> views_;
  Bytes moved_{};
  Histogram times_;
};

}  // namespace orrery
