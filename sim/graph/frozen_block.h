// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/graph/operator_graph.h"

namespace orrery {

/// "Stream `stream` must have completed `count` of its operators of this call of the block."
struct StreamWait {
  std::uint32_t count = 0;
  StreamId stream = 0;
};

/// One operator as it is replayed: 16 bytes.
struct FrozenOperator {
  std::uint32_t work = 0;        ///< KernelId or TransferId
  OperatorId id = 0;             ///< identifier in the graph that the block comes from, for names
  std::uint32_t first_wait = 0;  ///< index of the first wait in FrozenBlock::waits
  std::uint8_t waits = 0;        ///< number of waits, at most one per other stream
  OperatorKind kind = OperatorKind::kCompute;
  Category category = Category::kCompute;
};
static_assert(sizeof(FrozenOperator) == 16 && sizeof(StreamWait) == 8);

/// An OperatorGraph in the form that is replayed: the operators of each stream in their order of
/// execution. Dependencies within a stream are kept by that order; those between streams became
/// waits, without the ones that an earlier wait of the same stream implies.
struct FrozenBlock {
  std::vector<FrozenOperator> operators;    ///< operators by stream, in order
  std::vector<std::uint32_t> stream_begin;  ///< offsets in `operators` by stream, and the end
  std::vector<StreamWait> waits;

  std::uint32_t size(std::size_t stream) const {
    return stream_begin[stream + 1] - stream_begin[stream];
  }
};

/// The order in which a graph executes: topological, ties by id. Shorter than the graph if that has
/// a cycle.
std::vector<OperatorId> execution_order(const OperatorGraph& graph);

/// Freezes a graph whose operators use streams 0 .. streams-1.
/// @throws std::logic_error for a cycle or a stream out of range; verify() tells the user.
FrozenBlock freeze(const OperatorGraph& graph, std::size_t streams);

}  // namespace orrery
