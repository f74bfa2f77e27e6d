// SPDX-License-Identifier: Apache-2.0
// Graphs that were read, written as Chakra traces and read again; and parts of them.
#include "workloads/formats/chakra/graphs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "sim/config/byte_source.h"
#include "sim/config/diagnostics.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_builder.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/graph_slice.h"
#include "workloads/formats/kernel_text.h"

namespace orrery::chakra_graphs_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A kernel and a host operator, an all-gather of ranks 1 and 2, a send and a receive on rank 1.
ImportedRun small_run() {
  GraphBuilder builder;
  Kernel gemm;
  gemm.precision = Precision::kFp16;
  gemm.m = 64;
  gemm.n = 32;
  gemm.k = 16;
  gemm.matrix_flops = Flops(2.0 * 64 * 32 * 16);
  gemm.read = Bytes(3.5);
  gemm.kind = KernelClass::kGemm;
  NodeWork host, kernel;
  host.recorded = 1'234'567;
  host.timed = true;
  kernel.recorded = 7;  // ps
  kernel.timed = kernel.classified = true;
  kernel.kind = KernelClass::kGemm;
  kernel.kernel = builder.kernel(gemm);
  const NodeId launch =
      builder.add(10, "launch", NodeKind::kHost, builder.stream("thread 3"), host);
  const NodeId product =
      builder.add(4, "gemm", NodeKind::kKernel, builder.stream("stream 7"), kernel);
  builder.follows(product, launch);
  NodeWork unknown;
  unknown.communicates = true;
  builder.add(5, "nccl", NodeKind::kKernel, builder.stream("nccl"), unknown);
  ImportedMessage gather{TransferKind::kAllGather, Bytes(2048), 0};
  gather.recorded = 42;
  const NodeId all =
      builder.add(20, "gather", NodeKind::kCollective, builder.stream("nccl"), gather);
  builder.follows(all, product);
  ImportedMessage send{TransferKind::kSendReceive, Bytes(100)};
  send.peer = 2;
  send.tag = -5;
  const std::uint16_t beside = builder.stream("messages", false);
  builder.follows(builder.add(21, "send", NodeKind::kSend, beside, send), product);
  builder.follows(builder.add(22, "receive", NodeKind::kReceive, beside, send), product);
  builder.follows(
      builder.add(23, "end", NodeKind::kMarker, builder.stream("markers", false), NodeWork()), all);
  ImportedRun run;
  std::vector<std::string> notes;
  run.graphs.push_back(builder.finish("small", false, notes));
  run.graph_of_rank = {ImportedRun::kAbsent, 0, ImportedRun::kAbsent};
  run.groups = {{1, 2}};
  return run;
}

struct Again {
  ImportedGraph graph;
  Communicators communicators;
  int rank = 0;
};

Again written_and_read(const ImportedRun& run, int rank) {
  std::ostringstream text;
  ChakraGraphWriter(run).write(rank, text);
  const auto& chakra = GraphFormatRegistry::at("graph format", "chakra");
  Again again;
  again.rank = chakra->rank(text.str());
  ByteSource source("again.et", text.str());
  GraphBuilder builder;
  std::vector<std::string> notes;
  chakra->read(source, {rank, 1}, again.communicators, builder, notes);
  EXPECT_THAT(notes, IsEmpty());
  again.graph = builder.finish("again.et", false, notes);
  return again;
}

/// All that a node is, but for the numbers by which its graph keeps it.
std::string told(const ImportedGraph& graph, NodeId id,
                 const std::vector<std::vector<int>>& groups) {
  const ImportedNode& node = graph.nodes[id];
  std::ostringstream out;
  out << graph.ids[id] << " " << graph.name(id) << " " << to_string(node.kind) << " on "
      << graph.streams[node.stream].name << (graph.streams[node.stream].serial ? "" : " beside")
      << " after " << node.waits;
  if (node.kind <= NodeKind::kKernel) {
    const NodeWork& work = graph.works[node.work];
    out << " takes " << work.recorded << work.timed << work.classified << work.communicates;
    if (work.classified) out << to_string(work.kind);
    if (work.kernel != NodeWork::kNoKernel) out << " " << kernel_text(graph.kernels[work.kernel]);
    return out.str();
  }
  const ImportedMessage& message = graph.messages[node.work];
  out << " " << to_string(message.kind) << " " << message.bytes.base() << " " << message.peer << " "
      << message.tag << " " << message.recorded;
  if (message.group != ImportedMessage::kWorld)
    for (const int rank : groups[message.group]) out << " " << rank;
  return out.str();
}

std::vector<std::string> told(const ImportedGraph& graph,
                              const std::vector<std::vector<int>>& groups) {
  std::vector<std::string> all;
  for (NodeId node = 0; node < graph.size(); ++node)
    if (graph.name(node) != "process_group") all.push_back(told(graph, node, groups));
  return all;
}

TEST(ChakraGraphs, WhatIsWrittenReadsAgainAsTheSameGraph) {
  const ImportedRun run = small_run();
  const Again again = written_and_read(run, 1);
  EXPECT_EQ(told(again.graph, again.communicators.groups()), told(run.graphs[0], run.groups));
  EXPECT_EQ(again.graph.next.size(), run.graphs[0].next.size());
  EXPECT_EQ(again.rank, 1) << "others have no graph, so the file says whose it is";
}

TEST(ChakraGraphs, WritingTwiceAddsNothing) {
  ImportedRun run = small_run();
  Again once = written_and_read(run, 1);
  const std::size_t nodes = once.graph.size();
  run.graphs[0] = std::move(once.graph);
  run.groups = once.communicators.groups();
  EXPECT_EQ(written_and_read(run, 1).graph.size(), nodes);
}

TEST(ChakraGraphs, KernelsKeepTheirShapeInOneLine) {
  Kernel kernel;
  EXPECT_EQ(kernel_text(kernel), "");
  kernel.m = 5;
  kernel.precision = Precision::kFp8;
  kernel.matrix_flops = Flops(0.1);
  kernel.attention.backward = true;
  EXPECT_EQ(kernel_text(kernel), "precision=fp8 m=5 matrix_flops=0.1 backward=1");
  EXPECT_EQ(kernel_of_text(kernel_text(kernel)), kernel);
  EXPECT_TRUE(kernel_of_text("m=5 what_comes_later=3").has_value());
  for (const char* wrong :
       {"m", "m=x", "m=-5", "read=nan", "read=inf", "precision=fp1", "m=5  k=3"})
    EXPECT_FALSE(kernel_of_text(wrong).has_value()) << wrong;
}

std::vector<std::uint64_t> ids(const GraphSlice& part) {
  return part.run.graphs.empty() ? std::vector<std::uint64_t>() : part.run.graphs[0].ids;
}

TEST(GraphSlices, HaveWhatHoldsAllConditions) {
  const ImportedRun run = small_run();
  GraphSelection selection;
  selection.ids = {{4, 4}, {20, 22}};
  selection.names = {"gemm", "e"};
  EXPECT_THAT(ids(slice(run, selection, {})), ElementsAre(4U, 20U, 21U, 22U));
  selection.names = {"send"};
  EXPECT_THAT(ids(slice(run, selection, {})), ElementsAre(21U));
}

// launch -> gemm -> gather -> end, and gemm -> send, receive: 5 dependencies.
TEST(GraphSlices, DependenciesThatLeadOutAreCounted) {
  GraphSelection selection;
  selection.ids = {{4, 4}, {20, 20}};
  const GraphSlice part = slice(small_run(), selection, {});
  EXPECT_EQ(part.nodes, 2U);
  EXPECT_EQ(part.left_out, 5U);
  EXPECT_EQ(part.waits_cut, 1U) << "gemm on launch";
  EXPECT_EQ(part.next_cut, 3U) << "send, receive on gemm; end on gather";
  EXPECT_EQ(part.run.graphs[0].next.size(), 1U);
  EXPECT_EQ(part.run.graphs[0].nodes[0].waits, 0U);
  EXPECT_EQ(part.run.graphs[0].nodes[1].waits, 1U);
}

TEST(GraphSlices, FollowDependenciesBothWays) {
  GraphSelection up, down;
  up.upstream_of = "gather";
  EXPECT_THAT(ids(slice(small_run(), up, {})), ElementsAre(10U, 4U, 20U));
  down.downstream_of = "20";  // its identifier
  EXPECT_THAT(ids(slice(small_run(), down, {})), ElementsAre(20U, 23U));
  up.downstream_of = "4";
  EXPECT_THAT(ids(slice(small_run(), up, {})), ElementsAre(4U, 20U)) << "between the two";
}

TEST(GraphSlices, WindowsFollowEachOtherWithoutOverlap) {
  const NodeTimes begins = {{}, {0, 5, 5, 10, 10, 15, 20}, {}};
  std::vector<std::uint64_t> all;
  for (const Picoseconds from : {Picoseconds{0}, Picoseconds{10}, Picoseconds{15}}) {
    GraphSelection selection;
    selection.from = from;
    if (from < 15) selection.until = from == 0 ? 10 : 15;
    for (const std::uint64_t id : ids(slice(small_run(), selection, begins))) all.push_back(id);
  }
  EXPECT_THAT(all, ElementsAre(10U, 4U, 5U, 20U, 21U, 22U, 23U));
}

TEST(GraphSlices, WhatIsNotThereIsRefused) {
  const auto refusal = [](const GraphSelection& selection) -> std::string {
    try {
      slice(small_run(), selection, {});
    } catch (const config::ConfigError& error) {
      return error.what();
    }
    return {};
  };
  GraphSelection ranks, node, none;
  ranks.ranks = {{1, 3}};
  EXPECT_THAT(refusal(ranks), HasSubstr("no rank 3: the graph has ranks 0 to 2"));
  node.upstream_of = "gahter";
  EXPECT_THAT(refusal(node), HasSubstr("did you mean 'gather'?"));
  none.ids = {{900, 901}};
  EXPECT_THAT(refusal(none), HasSubstr("no node is left"));
}

}  // namespace
}  // namespace orrery::chakra_graphs_test
