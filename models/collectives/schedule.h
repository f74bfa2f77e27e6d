// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/collectives/algorithm.h"

namespace orrery {

/// What the receiver does with a chunk: take it, or add it to its own.
enum class ChunkOp : std::uint8_t { kCopy, kReduce };

/// `count` chunks from `first` on.
struct ChunkRange {
  int first = 0;
  int count = 1;
};

/// An end of a message that is no member: a group of switches that reduce and multicast. Each
/// group reduces what is sent to it in a step, sends copies of the result in the same step, and
/// keeps nothing. Groups are numbered from 0.
constexpr int switches(int group) { return -1 - group; }
constexpr bool is_switches(int end) { return end < 0; }

/// One message of a schedule.
struct Message {
  int step = 0;  ///< step from 0 on; what is received in a step can be sent in the next one
  int from = 0;  ///< member (position in the group), or switches()
  int to = 0;
  ChunkRange chunks;
  ChunkOp op = ChunkOp::kCopy;
  /// First cell at the receiver for the chunks; default: the same cell as at the sender. A rank
  /// that sends to other cells of its own moves data in its memory, which crosses no link.
  std::optional<int> into = {};

  int target() const { return into.value_or(chunks.first); }
};

/// What a message waits for.
enum class Pace : std::uint8_t {
  kChunk,  ///< chunks of the message: pipelined algorithms
  kRank,   ///< everything that its sender received in the steps before
  kRound,  ///< the slowest message of the step before
};

/// Where chunks are in the memory of members whose programs have buffers of their own.
struct ChunkPlaces {
  int cells = 0;           ///< chunks that the memory of a member holds
  std::vector<int> first;  ///< chunk in each cell of each member at first; -1: none
  std::vector<int> last;   ///< chunk that each cell of each member has to hold at last; -1: none
};

/// A collective message by message.
///
/// The buffer is cut into equal chunks. In all_gather, reduce_scatter, gather, scatter and barrier
/// member i of n owns chunks [i C/n, (i+1) C/n); in all_to_all there are n^2 parts of which i n + j
/// goes from member i to member j; a dispatch or combine is one whose parts differ in size. A
/// barrier is an all_gather of nothing: every member learns that every other has come.
struct Schedule {
  int chunks = 1;
  Pace pace = Pace::kChunk;
  std::vector<Message> messages = {};  ///< messages in any order
  /// None: chunk c is in cell c of every member, at first and at last.
  std::optional<ChunkPlaces> places = {};

  int cells() const { return places ? places->cells : chunks; }

  void copy(int step, int from, int to, ChunkRange range) {
    messages.push_back({step, from, to, range, ChunkOp::kCopy});
  }
  void reduce(int step, int from, int to, ChunkRange range) {
    messages.push_back({step, from, to, range, ChunkOp::kReduce});
  }
};

/// Bytes of one of `chunks` chunks.
Bytes chunk_bytes(const Collective& collective, int chunks);

/// What is wrong with a schedule.
struct ScheduleFault {
  std::optional<std::size_t> message;  ///< index of the message; none: it shows at the end
  std::string text;                    ///< names step, rank and chunk
};

/// Runs a schedule on sets of contributions per member and chunk. Proves that every member ends
/// with exactly what the collective promises, each contribution once, and that nothing is sent
/// before it is there or written twice in a step.
std::optional<ScheduleFault> verify_semantics(const Collective& collective,
                                              const Schedule& schedule);

/// The longest chain of dependent messages. A step through switches is one, up and down. Not of
/// schedules with places of their own.
StepCount dependent_steps(const Collective& collective, const Schedule& schedule);

}  // namespace orrery
