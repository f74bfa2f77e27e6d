// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/operator_graph.h"
#include "sim/graph/program.h"
#include "sim/units/time.h"

namespace orrery {

/// An operator on the critical path: from when the one before it on the path ended to its own end.
/// A transfer begins when the last of its roles has posted it.
struct PathStep {
  OperatorKind kind = OperatorKind::kCompute;
  std::uint32_t work = 0;  ///< kernel or transfer of the program
  std::uint32_t role = 0;
  BlockId block = 0;
  Picoseconds begin = 0, end = 0;
  Picoseconds running = 0;  ///< kernels: without launch, host and transfers beside it
  Picoseconds longer = 0;   ///< kernels: what transfers beside it made it take more
};

/// Why a replay ends when it does: the operator that ends last, what it waited for, and so on back
/// to the start. An operator waits for the one that let it start, be it the one before it in its
/// stream, one of another stream, or, of a transfer, what the last role to post it waited for. The
/// steps follow each other without gaps, so that their times add up to the end of the replay.
class CriticalPath {
 public:
  /// A replay begins that has that many streams in all.
  void clear(std::size_t streams);
  /// The operator at the head of a stream starts, or is posted, at the end of the one that ended
  /// last.
  void starts(std::size_t stream, Picoseconds now);
  /// The transfer that a stream has posted begins, let go by what `last` has posted.
  void meets(std::size_t stream, std::size_t last, Picoseconds now);
  /// The operator of a stream ends; times are those that were told.
  void ends(std::size_t stream, const PathStep& step, Picoseconds now);

  /// From the first to the last operator of the path.
  std::vector<PathStep> steps() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Node {
    PathStep step;
    std::uint32_t before = kNone;
  };
  std::vector<Node> nodes_;      ///< operators that have ended
  std::vector<Node> running_;    ///< operators by stream
  std::uint32_t ended_ = kNone;  ///< the last that ended
  std::uint32_t last_ = kNone;   ///< the first of those that ended latest
};

}  // namespace orrery
