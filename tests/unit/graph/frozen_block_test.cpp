// SPDX-License-Identifier: Apache-2.0
#include "sim/graph/frozen_block.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>
#include <stdexcept>

#include "sim/graph/dot.h"

namespace orrery::frozen_block_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Operator on_stream(StreamId stream, const std::string& name = "op") {
  return {name, OperatorKind::kCompute, Category::kCompute, stream, 0};
}

std::vector<OperatorId> ids(const FrozenBlock& block, std::size_t stream) {
  std::vector<OperatorId> result;
  for (std::uint32_t i = block.stream_begin[stream]; i < block.stream_begin[stream + 1]; ++i) {
    result.push_back(block.operators[i].id);
  }
  return result;
}

TEST(FrozenBlock, StreamsAreInTopologicalOrderWithTiesById) {
  OperatorGraph graph;
  for (int i = 0; i < 4; ++i) {
    graph.add(on_stream(0));
  }
  graph.depends(0, 3);
  EXPECT_THAT(execution_order(graph), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(ids(freeze(graph, 1), 0), ElementsAre(1, 2, 3, 0));
}

TEST(FrozenBlock, DependenciesWithinAStreamVanish) {
  OperatorGraph graph;
  graph.add(on_stream(0));
  graph.depends(graph.add(on_stream(0)), 0);
  EXPECT_TRUE(freeze(graph, 1).waits.empty());
}

TEST(FrozenBlock, DependenciesBetweenStreamsBecomeCounts) {
  OperatorGraph graph;
  graph.add(on_stream(0));
  graph.add(on_stream(0));
  const OperatorId waiting = graph.add(on_stream(1));
  graph.depends(waiting, 0);
  graph.depends(waiting, 1);
  const FrozenBlock block = freeze(graph, 2);
  ASSERT_EQ(block.waits.size(), 1U);  // the second implies the first
  EXPECT_EQ(block.waits[0].stream, 0);
  EXPECT_EQ(block.waits[0].count, 2U);
  EXPECT_EQ(block.operators[block.stream_begin[1]].waits, 1);
}

TEST(FrozenBlock, AWaitImpliedByAnEarlierOneVanishes) {
  OperatorGraph graph;
  graph.add(on_stream(0));
  graph.add(on_stream(0));
  const OperatorId first = graph.add(on_stream(1));
  const OperatorId second = graph.add(on_stream(1));
  graph.depends(first, 1);
  graph.depends(second, 0);
  EXPECT_EQ(freeze(graph, 2).waits.size(), 1U);
}

TEST(FrozenBlock, TakesAtMost32BytesPerOperatorAtOneAndAHalfEdges) {
  constexpr OperatorId kOperators = 20'000;
  std::mt19937 random(5);
  OperatorGraph graph;
  for (OperatorId id = 0; id < kOperators; ++id) {
    graph.add(on_stream(static_cast<StreamId>(id % 4)));
  }
  for (OperatorId edge = 0; edge < kOperators * 3 / 2; ++edge) {
    const OperatorId later = 1 + static_cast<OperatorId>(random() % (kOperators - 1));
    graph.depends(later, static_cast<OperatorId>(random() % later));
  }
  const FrozenBlock block = freeze(graph, 4);
  const std::size_t bytes = block.operators.capacity() * sizeof(FrozenOperator) +
                            block.waits.capacity() * sizeof(StreamWait) +
                            block.stream_begin.capacity() * sizeof(std::uint32_t);
  EXPECT_LE(bytes, 32U * kOperators);
}

TEST(FrozenBlock, ACycleOrAnUnknownStreamIsABug) {
  OperatorGraph cycle;
  cycle.add(on_stream(0));
  cycle.depends(0, 0);
  EXPECT_THROW(freeze(cycle, 1), std::logic_error);
  OperatorGraph graph;
  graph.add(on_stream(1));
  EXPECT_THROW(freeze(graph, 1), std::logic_error);
}

TEST(OperatorGraph, RejectsDependenciesOfUnknownOperators) {
  OperatorGraph graph;
  graph.add(on_stream(0));
  EXPECT_THROW(graph.depends(0, 1), std::out_of_range);
  EXPECT_THROW(graph.depends(1, 0), std::out_of_range);
}

TEST(Dot, WritesOperatorsStreamsAndDependencies) {
  OperatorGraph graph;
  graph.add(on_stream(0, "say \"qkv\""));
  Operator reduce = on_stream(1, "reduce");
  reduce.kind = OperatorKind::kCollective;
  graph.depends(graph.add(reduce), 0);
  std::ostringstream out;
  write_dot(out, graph, "layer");
  EXPECT_THAT(out.str(), HasSubstr("0[label=\"say \\\"qkv\\\" @0\", shape=box];"));
  EXPECT_THAT(out.str(), HasSubstr("1[label=\"reduce @1\", shape=ellipse];"));
  EXPECT_THAT(out.str(), HasSubstr("0->1"));
}

}  // namespace
}  // namespace orrery::frozen_block_test
