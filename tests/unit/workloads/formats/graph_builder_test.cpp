// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_builder.h"

#include "sim/config/diagnostics.h"
#include "workloads/formats/cycles.h"

namespace orrery::graph_builder_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

NodeId add(GraphBuilder& graph, std::uint64_t id, const std::string& name) {
  return graph.add(id, name, NodeKind::kKernel, graph.stream("compute"), NodeWork{});
}

ImportedGraph finished(GraphBuilder& graph, bool repair = false) {
  std::vector<std::string> notes;
  return graph.finish("a.et", repair, notes);
}

std::string refusal(GraphBuilder& graph) {
  try {
    finished(graph);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(GraphBuilder, DependenciesAreResolvedWhereverTheirNodesStand) {
  GraphBuilder graph;
  graph.depends(add(graph, 70, "last"), 5);  // comes later
  const NodeId first = add(graph, 5, "first");
  graph.depends(add(graph, 9, "between"), 5);
  graph.depends(0, 9);
  const ImportedGraph built = finished(graph);
  ASSERT_EQ(built.size(), 3U);
  EXPECT_EQ(built.nodes[0].waits, 2U);
  EXPECT_EQ(built.nodes[first].waits, 0U);
  EXPECT_EQ(built.nodes[first + 1].first_next - built.nodes[first].first_next, 2U);
  EXPECT_EQ(built.nodes[2].first_next, 2U);
  EXPECT_EQ(built.next[2], 0U);  // the last waits for the one between
  EXPECT_EQ(built.name(2), "between");
  EXPECT_THAT(built.ids, ElementsAre(70U, 5U, 9U));
}

TEST(GraphBuilder, IdentifiersThatStandTwiceAreRefused) {
  GraphBuilder graph;
  add(graph, 4, "a");
  add(graph, 2, "b");
  add(graph, 4, "c");
  EXPECT_THAT(refusal(graph), HasSubstr("a.et: a second node 4 'c'"));
}

TEST(GraphBuilder, DependenciesOnNodesThatAreNotThereAreListedOrDropped) {
  for (const bool repair : {false, true}) {
    GraphBuilder graph;
    graph.depends(add(graph, 1, "a"), 99);
    graph.depends(add(graph, 2, "b"), 1);
    if (!repair) {
      EXPECT_THAT(refusal(graph), HasSubstr("node 1 'a' waits for 99"));
      continue;
    }
    std::vector<std::string> notes;
    const ImportedGraph built = graph.finish("a.et", true, notes);
    EXPECT_EQ(built.next.size(), 1U);
    EXPECT_THAT(notes, ElementsAre("a.et: 1 dependency on nodes that are not there, dropped"));
  }
}

TEST(GraphBuilder, TheShortestCycleIsNamed) {
  const auto build = [](GraphBuilder& graph) {
    for (std::uint64_t id = 0; id < 6; ++id) add(graph, id, "n" + std::to_string(id));
    // 0 -> 1 -> 2 -> 3 -> 0, and the shorter way 2 -> 4 -> 2; 5 is behind them
    for (const auto& [later, earlier] : std::vector<std::pair<NodeId, NodeId>>{
             {1, 0}, {2, 1}, {3, 2}, {0, 3}, {4, 2}, {2, 4}, {5, 4}})
      graph.follows(later, earlier);
  };
  GraphBuilder broken;
  build(broken);
  EXPECT_THAT(refusal(broken),
              HasSubstr("2 nodes wait for each other: 2 'n2' before 4 'n4' before 2 'n2' again"));
  GraphBuilder mended;
  build(mended);
  std::vector<std::string> notes;
  const ImportedGraph built = mended.finish("a.et", true, notes);
  EXPECT_THAT(shortest_cycle(built), ElementsAre());
  EXPECT_EQ(built.next.size(), 5U);
  EXPECT_THAT(notes, ElementsAre("a.et: 2 dependencies in cycles, dropped"));
}

TEST(GraphBuilder, EqualKernelsAndMessagesAreKeptOnce) {
  GraphBuilder graph;
  Kernel gemm;
  gemm.kind = KernelClass::kGemm;
  gemm.m = 64;
  gemm.name = "one";
  Kernel again = gemm;
  again.name = "two";
  EXPECT_EQ(graph.kernel(gemm), graph.kernel(again));
  again.m = 65;
  EXPECT_NE(graph.kernel(gemm), graph.kernel(again));
  ImportedMessage message;
  message.bytes = Bytes(8);
  for (std::uint64_t id = 0; id < 3; ++id) {
    message.tag = id == 2 ? 1 : 0;
    graph.add(id, "ar", NodeKind::kCollective, graph.stream("communication"), message);
  }
  const ImportedGraph built = finished(graph);
  EXPECT_EQ(built.kernels.size(), 2U);
  EXPECT_EQ(built.messages.size(), 2U);
  EXPECT_EQ(built.streams.size(), 1U);
}

}  // namespace
}  // namespace orrery::graph_builder_test
