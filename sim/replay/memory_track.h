// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/graph/program.h"
#include "sim/graph/tensors.h"
#include "sim/replay/actors.h"
#include "sim/units/time.h"

namespace orrery {

class Timeline;

/// Writes the memory of each role, or rank, over time into a timeline, as counters in bytes: what
/// it holds all the time (Role::held), and the tensors that its operators make and free, by
/// TensorRole. Nothing of programs that name no tensors.
class MemoryTrack {
 public:
  /// @param program, timeline outlive it
  MemoryTrack(const Program& program, const std::vector<Actor>& actors, Timeline& timeline);

  /// An operator starts, and what it makes is there.
  void starts(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now);
  /// It has ended, and what it frees is gone.
  void ends(std::uint32_t actor, BlockId block, OperatorId op, Picoseconds now);

 private:
  void apply(std::uint32_t actor, BlockId block, OperatorId op, bool ends, Picoseconds now);
  void write(std::uint32_t actor, TensorRole tensors, Picoseconds now);

  const Program& program_;
  Timeline& timeline_;
  std::vector<std::vector<std::uint32_t>> first_event_;  ///< first events by block and operator
  std::vector<std::array<Bytes, kTensorRoles>> alive_;   ///< bytes by actor and TensorRole
  std::vector<Bytes> held_;                              ///< bytes by actor
};

}  // namespace orrery
