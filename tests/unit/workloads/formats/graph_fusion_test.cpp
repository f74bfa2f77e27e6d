// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <gtest/gtest.h>

#include "workloads/formats/graph_builder.h"

namespace orrery {
namespace {

/// Kernels of one stream, each behind others.
class Kernels {
 public:
  NodeId add(const char* name, KernelClass kind, double read, double written,
             const std::vector<NodeId>& after = {}, const char* stream = "compute") {
    Kernel kernel;
    kernel.name = name;
    kernel.kind = kind;
    kernel.matrix_flops = Flops(kind == KernelClass::kGemm ? 1000 : 0);
    kernel.vector_flops = Flops(kind == KernelClass::kGemm ? 0 : 10);
    kernel.read = Bytes(read);
    kernel.written = Bytes(written);
    NodeWork work;
    work.kernel = builder_.kernel(kernel);
    work.kind = kind;
    work.classified = work.timed = true;
    work.recorded = 7;
    const NodeId node =
        builder_.add(builder_.size(), name, NodeKind::kKernel, builder_.stream(stream), work);
    for (const NodeId earlier : after) builder_.follows(node, earlier);
    return node;
  }
  ImportedGraph graph() {
    std::vector<std::string> notes;
    return builder_.finish("kernels", false, notes);
  }

 private:
  GraphBuilder builder_;
};

const Kernel& kernel_of(const ImportedGraph& graph, NodeId node) {
  return graph.kernels[graph.works[graph.nodes[node].work].kernel];
}

constexpr auto kGemm = KernelClass::kGemm;
constexpr auto kElementwise = KernelClass::kElementwise;

// The product writes 100 bytes that the sum reads, with 40 of another tensor: 140 + 100 stay.
TEST(GraphFusion, AProductTakesTheElementwiseKernelBehindIt) {
  Kernels kernels;
  const NodeId other = kernels.add("other", kElementwise, 40, 40, {}, "beside");
  const NodeId product = kernels.add("product", kGemm, 100, 100);
  const NodeId sum = kernels.add("sum", kElementwise, 140, 100, {product, other});
  ImportedGraph graph = kernels.graph();
  EXPECT_EQ(fuse_kernels(graph), 1U);
  EXPECT_EQ(graph.nodes[product].kind, NodeKind::kMarker);
  EXPECT_EQ(graph.works[graph.nodes[product].work].recorded, 0U);
  const Kernel& both = kernel_of(graph, sum);
  EXPECT_EQ(both.kind, kGemm);
  EXPECT_EQ(both.read, Bytes(140));
  EXPECT_EQ(both.written, Bytes(100));
  EXPECT_EQ(both.matrix_flops, Flops(1000));
  EXPECT_EQ(both.vector_flops, Flops(10));
  EXPECT_EQ(graph.name(sum), "product + sum");
  EXPECT_EQ(graph.works[graph.nodes[sum].work].recorded, 14U) << "recorded times add up";
  EXPECT_EQ(graph.nodes[sum].waits, 2U) << "it still waits for both";
}

TEST(GraphFusion, EpiloguesFollowEachOther) {
  Kernels kernels;
  NodeId last = kernels.add("product", kGemm, 100, 100);
  for (const char* name : {"bias", "gelu", "scale"})
    last = kernels.add(name, kElementwise, 100, 100, {last});
  ImportedGraph graph = kernels.graph();
  EXPECT_EQ(fuse_kernels(graph), 3U);
  EXPECT_EQ(kernel_of(graph, last).read, Bytes(100));
  EXPECT_EQ(kernel_of(graph, last).written, Bytes(100));
}

TEST(GraphFusion, WhatOthersNeedTooIsWritten) {
  Kernels kernels;
  const NodeId product = kernels.add("product", kGemm, 100, 100);
  kernels.add("one", kElementwise, 100, 100, {product});
  kernels.add("two", kElementwise, 100, 100, {product});
  ImportedGraph graph = kernels.graph();
  EXPECT_EQ(fuse_kernels(graph), 0U);
}

TEST(GraphFusion, OtherStreamsClassesAndPartsStayApart) {
  for (const int why : {0, 1, 2, 3}) {
    Kernels kernels;
    const NodeId product = kernels.add("product", why == 0 ? kElementwise : kGemm, 100, 100);
    kernels.add("next", why == 1 ? kGemm : kElementwise, why == 2 ? 99 : 100, 100, {product},
                why == 3 ? "other" : "compute");
    ImportedGraph graph = kernels.graph();
    EXPECT_EQ(fuse_kernels(graph), 0U) << why;
  }
}

}  // namespace
}  // namespace orrery
