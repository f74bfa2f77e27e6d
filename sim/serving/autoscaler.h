// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/events/event_queue.h"
#include "sim/serving/instance.h"
#include "sim/units/units.h"

namespace orrery {

/// Time for which an instance is held, from `begin` until `end`.
struct HeldPeriod {
  Picoseconds begin = 0, end = 0;
};

/// How many instances of a group run.
struct ScaleRules {
  std::size_t first = 0;  ///< first instance of the group
  std::size_t least = 1;  ///< instances that always run
  std::size_t most = 1;   ///< instances in all
  double requests = 1;    ///< requests, waiting and running, that an instance is to have
  Seconds interval{};     ///< time between two looks; 0: all run always
  Seconds start{};        ///< time until a new one takes requests
  Seconds cool_down{};    ///< time for which fewer must do before one ends
  Seconds ramp{};         ///< time over which a new one gets its full share
};

/// Starts and ends instances by the requests that there are, as a horizontal pod autoscaler does:
/// the number that gives each the requests of its target, rounded up. One that is to end takes no
/// new requests and leaves when its last one is answered. A new one takes no more than its share of
/// the ramp of what others have, so that a cold cache is not flooded.
class Autoscaler {
 public:
  explicit Autoscaler(const std::vector<ScaleRules>& groups);

  /// Whether an instance takes requests.
  bool takes(std::size_t instance, const std::vector<Instance>& instances, Picoseconds now) const;
  /// Starts and ends instances. @return when to look next; kNever: nobody needs it
  Picoseconds look(const std::vector<Instance>& instances, Picoseconds now);
  /// Time for which an instance was held until `now`, starting and ending included.
  Picoseconds held(std::size_t instance, Picoseconds now) const;
  /// The periods that add up to held(), in their order.
  std::vector<HeldPeriod> periods(std::size_t instance, Picoseconds now) const;

 private:
  enum class State : std::uint8_t { kOff, kStarting, kOn, kEnding };
  struct Member {
    State state = State::kOn;
    Picoseconds since = 0;         ///< when it began to be held
    Picoseconds ready = 0;         ///< when it takes requests
    std::vector<HeldPeriod> held;  ///< periods before `since`
  };
  struct Group {
    ScaleRules rules;
    std::vector<Member> members;
    Picoseconds enough_since = 0;  ///< since when fewer would do
  };

  static void look(Group& group, const std::vector<Instance>& instances, Picoseconds now);
  const Group& group_of(std::size_t instance) const;

  std::vector<Group> groups_;
};

}  // namespace orrery
