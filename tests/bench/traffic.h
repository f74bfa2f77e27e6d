// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace orrery::bench {

/// Whether all messages have one size, or each its own, up to 10 % off either way.
enum class Sizes { kEqual, kJittered };

/// Messages between ranks that each have a link into the network and one out of it, of one
/// capacity. Chains of messages start at time 0; the next message of a chain starts when the one
/// before has ended.
struct Traffic {
  struct Chain {
    std::uint32_t from, to;
  };
  std::uint32_t ranks = 0;
  std::uint32_t steps = 0;  ///< messages of each chain
  double capacity = 0;      ///< bytes/s of each link
  double bytes = 0;         ///< bytes of a message, before jitter
  Sizes sizes = Sizes::kEqual;
  std::vector<Chain> chains;

  std::uint64_t messages() const { return std::uint64_t{steps} * chains.size(); }
  /// Whole bytes of one message: a function of its number alone.
  double size(std::uint64_t chain, std::uint32_t step) const;
};

/// An all-to-all on 72 accelerators: 71 messages each, all at once.
Traffic nvl72_all_to_all(Sizes sizes);
/// A ring all-reduce of 1,024: 2,046 messages from each to the next, 2.095 M in all.
Traffic ring_1024(Sizes sizes);

}  // namespace orrery::bench
