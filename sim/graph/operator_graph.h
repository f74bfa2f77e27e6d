// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace orrery {

using KernelId = std::uint32_t;
using TransferId = std::uint32_t;
using BlockId = std::uint32_t;
using StreamId = std::uint8_t;
using OperatorId = std::uint32_t;

/// What an operator does. Collectives name a Transfer that all participants join; a message is a
/// kSend on one role and a kReceive on the other, naming the same Transfer.
enum class OperatorKind : std::uint8_t { kCompute, kCollective, kSend, kReceive };

/// Where the time of an operator is counted in `breakdown`.
enum class Category : std::uint8_t { kCompute, kOptimizer, kCommunication };

/// One node of an operator graph.
struct Operator {
  std::string name;  ///< "layer 3 qkv", for traces and diagnostics
  OperatorKind kind = OperatorKind::kCompute;
  Category category = Category::kCompute;
  StreamId stream = 0;
  std::uint32_t work = 0;  ///< KernelId for kCompute, TransferId otherwise
};

/// A DAG of operators of one role, built with Boost.Graph, verified, then frozen into a Block for
/// replay. Who follows the dependencies includes operator_graph_boost.h.
class OperatorGraph {
 public:
  struct Graph;  ///< graph of Boost, which few need and all would wait for

  OperatorGraph();
  OperatorGraph(const OperatorGraph& other);
  OperatorGraph(OperatorGraph&& other) noexcept;
  OperatorGraph& operator=(const OperatorGraph& other);
  OperatorGraph& operator=(OperatorGraph&& other) noexcept;
  ~OperatorGraph();

  OperatorId add(const Operator& op);
  /// `later` starts only after `earlier` has ended.
  void depends(OperatorId later, OperatorId earlier);

  const Graph& graph() const { return *graph_; }
  std::size_t size() const;
  const Operator& operator[](OperatorId id) const;

 private:
  std::unique_ptr<Graph> graph_;
};

}  // namespace orrery
