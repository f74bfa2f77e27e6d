// SPDX-License-Identifier: Apache-2.0
#include "workloads/formats/graph_fusion.h"

#include <gtest/gtest.h>

#include "workloads/formats/graph_builder.h"
#include "workloads/ops/kernels.h"

namespace orrery::graph_fusion_test {
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
    return add(kernel, after, stream);
  }
  NodeId add(const Kernel& kernel, const std::vector<NodeId>& after,
             const char* stream = "compute") {
    NodeWork work;
    work.kernel = builder_.kernel(kernel);
    work.kind = kernel.kind;
    work.classified = work.timed = true;
    work.recorded = 7;
    const NodeId node = builder_.add(builder_.size(), kernel.name, NodeKind::kKernel,
                                     builder_.stream(stream), work);
    for (const NodeId earlier : after) builder_.follows(node, earlier);
    return node;
  }
  void keeps(NodeId node) { builder_.keeps(node); }
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
  EXPECT_EQ(fuse_kernels(graph).gone, 1U);
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
  EXPECT_EQ(fuse_kernels(graph).gone, 3U);
  EXPECT_EQ(kernel_of(graph, last).read, Bytes(100));
  EXPECT_EQ(kernel_of(graph, last).written, Bytes(100));
}

TEST(GraphFusion, WhatOthersNeedTooIsWritten) {
  Kernels kernels;
  const NodeId product = kernels.add("product", kGemm, 100, 100);
  kernels.add("one", kElementwise, 100, 100, {product});
  kernels.add("two", kElementwise, 100, 100, {product});
  ImportedGraph graph = kernels.graph();
  EXPECT_EQ(fuse_kernels(graph).gone, 0U);
}

TEST(GraphFusion, OtherStreamsClassesAndPartsStayApart) {
  for (const int why : {0, 1, 2, 3, 4}) {
    Kernels kernels;
    const NodeId product =
        kernels.add("product", why == 0 ? KernelClass::kSoftmax : kGemm, 100, 100);
    kernels.add("next", why == 1 ? kGemm : kElementwise, why == 2 ? 99 : 100, 100, {product},
                why == 3 ? "other" : "compute");
    if (why == 4) kernels.keeps(product);
    ImportedGraph graph = kernels.graph();
    EXPECT_EQ(fuse_kernels(graph).gone, 0U) << why;
  }
}

TEST(GraphFusion, ElementwiseKernelsFollowEachOtherInOne) {
  Kernels kernels;
  const NodeId other = kernels.add("other", kGemm, 30, 30, {}, "beside");
  const NodeId scale = kernels.add("scale", kElementwise, 100, 100);
  const NodeId sum = kernels.add("sum", kElementwise, 130, 100, {scale, other});
  const NodeId narrow = kernels.add("narrow", kElementwise, 100, 50, {sum});
  ImportedGraph graph = kernels.graph();
  const FusedKernels fused = fuse_kernels(graph);
  EXPECT_EQ(fused.gone, 2U);
  EXPECT_EQ(fused.saved, Bytes(400)) << "two results written and read";
  EXPECT_EQ(kernel_of(graph, narrow).read, Bytes(130));
  EXPECT_EQ(kernel_of(graph, narrow).written, Bytes(50));
  EXPECT_EQ(kernel_of(graph, narrow).vector_flops, Flops(30));
  EXPECT_EQ(kernel_of(graph, narrow).kind, kElementwise);
}

/// Attention of 2 heads, 100 queries and 160 keys of 64 columns, 32 of values, 16 bits.
struct Attention {
  static constexpr double kSquare = 2.0 * 100 * 160 * 2;  ///< bytes of the scores
  static constexpr double kQueries = 2.0 * 100 * 64 * 2, kKeys = 2.0 * 160 * 64 * 2;
  static constexpr double kValues = 2.0 * 160 * 32 * 2, kResult = 2.0 * 100 * 32 * 2;

  Attention() {
    queries = kernels.add("queries", kElementwise, kQueries, kQueries, {}, "beside");
    scores = kernels.add(gemm("scores", Precision::kBf16, {100, 160, 64, 2}), {queries});
    const NodeId scale = add_square("scale", kElementwise, scores);
    mask = add_square("mask", kElementwise, scale, 160 * 2);
    softmax = add_square("softmax", KernelClass::kSoftmax, mask);
    dropout = add_square("dropout", kElementwise, softmax);
    values = kernels.add(gemm("values", Precision::kBf16, {100, 32, 160, 2}), {dropout});
    after = kernels.add("after", KernelClass::kNormalization, kResult, kResult, {values});
  }

  NodeId add_square(const char* name, KernelClass kind, NodeId behind, double more = 0) {
    Kernel kernel = stream(name, kind, 200, 160, {2, 2, 1});
    kernel.read += Bytes(more);
    if (kind == KernelClass::kSoftmax) kernel.exponentials = Flops(200 * 160);
    return kernels.add(kernel, {behind});
  }

  Kernels kernels;
  NodeId queries, scores, mask, softmax, dropout, values, after;
};

double flops_of(const ImportedGraph& graph) {
  double sum = 0;
  for (NodeId node = 0; node < graph.size(); ++node) {
    if (graph.nodes[node].kind != NodeKind::kKernel) continue;
    const Kernel& kernel = kernel_of(graph, node);
    sum += (kernel.matrix_flops + kernel.vector_flops + kernel.exponentials).base();
  }
  return sum;
}

// Scores, scaled, masked, probabilities and what dropout leaves of them: five results of a square
// each that are written and read.
TEST(GraphFusion, ScoresSoftmaxAndValuesAreOneAttentionKernel) {
  Attention a;
  ImportedGraph graph = a.kernels.graph();
  const double flops = flops_of(graph);
  const FusedKernels fused = fuse_kernels(graph);
  EXPECT_EQ(fused.gone, 5U);
  EXPECT_EQ(fused.attentions, 1U);
  EXPECT_EQ(fused.saved, Bytes(5 * 2 * Attention::kSquare));
  const Kernel& one = kernel_of(graph, a.values);
  EXPECT_EQ(one.kind, KernelClass::kAttentionPrefill);
  EXPECT_EQ(one.read, Bytes(Attention::kQueries + Attention::kKeys + Attention::kValues + 160 * 2));
  EXPECT_EQ(one.written, Bytes(Attention::kResult));
  EXPECT_EQ(one.matrix_flops, Flops(2.0 * 2 * 100 * 160 * (64 + 32)));
  EXPECT_EQ(one.exponentials, Flops(2.0 * 100 * 160));
  EXPECT_DOUBLE_EQ(flops_of(graph), flops);
  EXPECT_EQ(one.batch, 2);
  EXPECT_EQ(one.m, 100);
  EXPECT_EQ(one.n, 160);
  EXPECT_EQ(graph.name(a.values), "scores + scale + mask + softmax + dropout + values");
  EXPECT_EQ(graph.works[graph.nodes[a.values].work].recorded, 42U) << "recorded times add up";
}

TEST(GraphFusion, WhatWaitedForAttentionAndItForStays) {
  Attention a;
  ImportedGraph graph = a.kernels.graph();
  const std::vector<NodeId> next = graph.next;
  fuse_kernels(graph);
  EXPECT_EQ(graph.next, next) << "queries before scores before .. before after";
  EXPECT_EQ(graph.nodes[a.scores].kind, NodeKind::kMarker);
  EXPECT_EQ(graph.nodes[a.after].waits, 1U);
  std::vector<std::uint32_t> parts = graph.parts.at(graph.works[graph.nodes[a.values].work].kernel);
  EXPECT_EQ(parts.size(), 6U) << "all that it does the work of";
}

TEST(GraphFusion, ProbabilitiesThatABackwardPassNeedsStayInMemory) {
  Attention a;
  a.kernels.keeps(a.softmax);
  ImportedGraph graph = a.kernels.graph();
  const FusedKernels fused = fuse_kernels(graph);
  EXPECT_EQ(fused.attentions, 0U);
  EXPECT_EQ(graph.nodes[a.softmax].kind, NodeKind::kKernel);
  Attention read_twice;
  read_twice.kernels.add("reader", kElementwise, 1, 1, {read_twice.softmax});
  ImportedGraph twice = read_twice.kernels.graph();
  EXPECT_EQ(fuse_kernels(twice).attentions, 0U);
}

TEST(GraphFusion, ProductsOfOtherSizesAreNoAttention) {
  Kernels kernels;
  const NodeId scores = kernels.add(gemm("scores", Precision::kBf16, {100, 160, 64, 2}), {});
  const NodeId softmax =
      kernels.add(stream("softmax", KernelClass::kSoftmax, 200, 160, {2, 2, 5}), {scores});
  kernels.add(gemm("values", Precision::kBf16, {100, 32, 80, 4}), {softmax});
  ImportedGraph graph = kernels.graph();
  EXPECT_EQ(fuse_kernels(graph).gone, 0U);
}

}  // namespace
}  // namespace orrery::graph_fusion_test
