// SPDX-License-Identifier: Apache-2.0
// Chakra traces from PyTorch: what kernels compute, and who reads what they write, by their
// tensors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/byte_source.h"
#include "tests/unit/workloads/formats/chakra_file.h"
#include "workloads/formats/chakra/python_text.h"
#include "workloads/formats/chakra/torch_operator.h"
#include "workloads/formats/communicators.h"
#include "workloads/formats/graph_facts.h"
#include "workloads/formats/graph_format.h"
#include "workloads/formats/graph_fusion.h"

namespace orrery::chakra_operators_test {
namespace {

using test::attribute;
using test::chakra_file;
using test::chakra_node;
using test::int64_attribute;
using test::micros;
using test::number;
using test::text;
using testing::HasSubstr;

/// A tensor of 16-bit numbers in a memory; 0: the text of something else.
struct TestTensor {
  int storage = 0;
  std::vector<std::int64_t> shape = {};
  std::string other = {};

  std::int64_t elements() const {
    std::int64_t product = 1;
    for (const std::int64_t size : shape) product *= size;
    return product;
  }
};

std::string listed(const std::vector<std::string>& items) {
  std::string list = "[";
  for (const std::string& item : items) list.append(list.size() > 1 ? ", " : "").append(item);
  return list + "]";
}

std::string sizes_text(const TestTensor& tensor) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : tensor.shape) sizes.push_back(std::to_string(size));
  return listed(sizes);
}

/// Values, shapes and types as IOInfo has them.
std::vector<std::string> texts_of(const std::vector<TestTensor>& tensors) {
  std::vector<std::string> values, shapes, types;
  for (const TestTensor& one : tensors) {
    shapes.push_back(sizes_text(one));
    if (one.storage == 0) {
      values.push_back(one.other);
      types.emplace_back("'Double'");
      continue;
    }
    values.push_back("[" + std::to_string(100 + one.storage) + ", " + std::to_string(one.storage) +
                     ", 0, " + std::to_string(one.elements()) + ", 2, 'cuda:0']");
    types.emplace_back("'Tensor(c10::Half)'");
  }
  return {listed(values), listed(shapes), listed(types)};
}

std::string io(unsigned field, const std::vector<TestTensor>& tensors) {
  const std::vector<std::string> texts = texts_of(tensors);
  return text(field, text(1, texts[0]) + text(2, texts[1]) + text(3, texts[2]));
}

std::optional<TorchOperator> op_of(const char* name, const std::vector<TestTensor>& inputs,
                                   const std::vector<TestTensor>& outputs) {
  const std::vector<std::string> in = texts_of(inputs), out = texts_of(outputs);
  return torch_operator(name, {in[0], in[1], in[2]}, {out[0], out[1], out[2]});
}

TEST(PythonText, ListsOfListsAndTextsAreRead) {
  const auto value = python_value("[[1, 2], 'a, [b', (None, -3.5), []]");
  ASSERT_TRUE(value);
  ASSERT_EQ(value->items.size(), 4U);
  EXPECT_EQ(value->items[0].items[1].text, "2");
  EXPECT_EQ(value->items[0].text, "[1, 2]");
  EXPECT_EQ(value->items[1].text, "a, [b");
  EXPECT_EQ(value->items[2].items[1].text, "-3.5");
  EXPECT_TRUE(value->items[3].is_list);
  EXPECT_TRUE(value->items[3].items.empty());
}

TEST(PythonText, WhatIsNoneIsRefusedHoweverDeep) {
  for (const char* wrong : {"", "[", "[1", "[1 2]x", "['a", "[1,,2]", "[1] 2", "'a\\"})
    EXPECT_FALSE(python_value(wrong)) << wrong;
  EXPECT_FALSE(python_value(std::string(100'000, '[')));
  EXPECT_EQ(natural_number("12"), 12);
  for (const char* wrong : {"", "-1", "1.5", "x", "99999999999999999999"})
    EXPECT_EQ(natural_number(wrong), -1) << wrong;
}

TEST(TorchOperator, ProductsHaveTheSizesOfTheirOperands) {
  const auto op = op_of("aten::bmm", {{1, {2, 100, 64}}, {2, {2, 64, 160}}}, {{3, {2, 100, 160}}});
  ASSERT_TRUE(op && op->kernel);
  EXPECT_EQ(op->kernel->kind, KernelClass::kGemm);
  EXPECT_EQ(op->kernel->precision, Precision::kFp16);
  EXPECT_EQ(op->kernel->batch, 2);
  EXPECT_EQ(op->kernel->m, 100);
  EXPECT_EQ(op->kernel->n, 160);
  EXPECT_EQ(op->kernel->k, 64);
  EXPECT_EQ(op->kernel->matrix_flops, Flops(2.0 * 2 * 100 * 160 * 64));
  EXPECT_EQ(op->kernel->read, Bytes(2 * (2.0 * 100 * 64 + 2.0 * 64 * 160)));
  EXPECT_EQ(op->kernel->written, Bytes(2 * 2.0 * 100 * 160));
  const auto heads =
      op_of("aten::matmul", {{1, {2, 4, 100, 64}}, {2, {2, 4, 64, 160}}}, {{3, {2, 4, 100, 160}}});
  ASSERT_TRUE(heads && heads->kernel);
  EXPECT_EQ(heads->kernel->batch, 8);
  EXPECT_EQ(heads->kernel->m, 100);
}

// addmm(self, m1, m2, beta, alpha): what is added is read, unless beta is 0.
TEST(TorchOperator, WhatAnOperatorOverwritesOrMultipliesByZeroIsNotRead) {
  const TestTensor bias{4, {160}}, a{1, {100, 64}}, b{2, {64, 160}}, result{3, {100, 160}};
  const TestTensor one{0, {}, "1"}, zero{0, {}, "0"};
  const double operands = 2.0 * (100 * 64 + 64 * 160);
  EXPECT_EQ(op_of("aten::addmm", {bias, a, b, one, one}, {result})->kernel->read,
            Bytes(operands + 320));
  EXPECT_EQ(op_of("aten::addmm", {bias, a, b, zero, one}, {result})->kernel->read, Bytes(operands));
  const auto copy = op_of("aten::copy_", {{1, {100}}, {2, {100}}}, {{1, {100}}});
  EXPECT_EQ(copy->kernel->read, Bytes(200));
  EXPECT_EQ(copy->kernel->written, Bytes(200));
  EXPECT_EQ(op_of("aten::mul_", {{1, {100}}, {1, {100}}}, {{1, {100}}})->kernel->read, Bytes(200))
      << "the same memory twice";
}

TEST(TorchOperator, WhatNoRuleKnowsHasTensorsAlone) {
  const auto op = op_of("aten::cumsum", {{1, {100}}}, {{2, {100}}});
  ASSERT_TRUE(op);
  EXPECT_FALSE(op->kernel);
  EXPECT_EQ(op->reads.size(), 1U);
  EXPECT_FALSE(op_of("aten::add", {{0, {}, "1"}}, {})) << "no tensors";
  EXPECT_EQ(operator_of_schema("aten::add.Tensor(Tensor self) -> Tensor"), "aten::add");
  EXPECT_EQ(operator_of_schema("none"), "");
}

/// A trace of kernels of one stream that the host launches, as Chakra's converter writes them: all
/// that a kernel waits for is its launch.
class TorchTrace {
 public:
  std::uint64_t add(const char* op, const std::vector<TestTensor>& inputs,
                    const std::vector<TestTensor>& outputs, const std::string& more = {}) {
    return add_kernel("kernel",
                      attribute("op_schema", text(29, std::string(op) + "(Tensor x)")) +
                          int64_attribute("rf_id", static_cast<std::int64_t>(1000 + number_)) +
                          io(8, inputs) + io(9, outputs) + more);
  }
  /// A kernel that tells nothing of itself.
  std::uint64_t add_unknown() { return add_kernel("kernel", {}); }

  std::uint64_t add_kernel(const char* name, const std::string& more) {
    const std::uint64_t launch = ++number_;
    std::vector<std::uint64_t> before;
    if (launch > 1) before = {launch - 2};
    nodes_ += chakra_node(launch, "cudaLaunchKernel", 4, before,
                          micros(1) + attribute("is_cpu_op", number(27, 1)));
    nodes_ += chakra_node(++number_, name, 4, {launch},
                          micros(10) + int64_attribute("stream", stream) + more);
    return number_;
  }

  struct Fused {
    ImportedGraph graph;
    GraphFacts before, after;
    FusedKernels fused;
    std::vector<std::string> notes;
  };
  Fused fuse() const {
    Fused result;
    ByteSource source("t.et", chakra_file(nodes_));
    Communicators communicators;
    GraphBuilder builder;
    builder.collect_tensors();
    GraphFormatRegistry::at("graph format", "chakra")
        ->read(source, {}, communicators, builder, result.notes);
    result.graph = builder.finish("t.et", false, result.notes);
    result.before = graph_facts(result.graph);
    result.fused = fuse_kernels(result.graph, builder.tensors());
    result.after = graph_facts(result.graph);
    return result;
  }

  std::int64_t stream = 7;

 private:
  std::string nodes_;
  std::uint64_t number_ = 0;
};

/// Attention of 2 heads, 100 queries and 160 keys of 64 columns, 32 of values, as PyTorch carries
/// it out without a fused kernel: scaled in place, masked into a new tensor.
struct TorchAttention : TorchTrace {
  const TestTensor queries{10, {2, 100, 64}}, keys{11, {2, 64, 160}}, scores{12, {2, 100, 160}},
      mask{13, {100, 160}}, masked{14, {2, 100, 160}}, probabilities{15, {2, 100, 160}},
      values{16, {2, 160, 32}}, result{17, {2, 100, 32}};

  void add_scores() {
    add("aten::bmm", {queries, keys}, {scores});
    add("aten::mul_", {scores, {0, {}, "0.125"}}, {scores});
    add("aten::masked_fill", {scores, mask, {0, {}, "-1e9"}}, {masked});
    add("aten::_softmax", {masked, {0, {}, "-1"}, {0, {}, "False"}}, {probabilities});
  }
  void add_values() { add("aten::bmm", {probabilities, values}, {result}); }
};

// Scores, what scales and masks them and the softmax write 4 squares that are read again.
TEST(ChakraOperators, AttentionOfPyTorchBecomesOneKernel) {
  TorchAttention trace;
  trace.add_scores();
  trace.add_values();
  const TorchTrace::Fused all = trace.fuse();
  constexpr double kSquare = 2.0 * 2 * 100 * 160;
  EXPECT_EQ(all.fused.gone, 4U);
  EXPECT_EQ(all.fused.attentions, 1U);
  EXPECT_EQ(all.fused.saved, Bytes(8 * kSquare));
  EXPECT_EQ(all.before.bytes - all.after.bytes, 8 * kSquare);
  EXPECT_EQ(all.after.bytes,
            2.0 * (2 * 100 * 64 + 2 * 64 * 160 + 100 * 160 + 2 * 160 * 32 + 2 * 100 * 32));
  EXPECT_DOUBLE_EQ(all.after.flops, all.before.flops);
  EXPECT_EQ(all.after.by_kind[static_cast<std::size_t>(NodeKind::kKernel)], 1U);
  EXPECT_THAT(all.notes.front(), HasSubstr("5 of 5 kernels have sizes"));
}

TEST(ChakraOperators, FusedKernelsWaitForAllThatTheirPartsWaitedFor) {
  TorchAttention trace;
  trace.add_scores();
  trace.add_values();
  const TorchTrace::Fused all = trace.fuse();
  EXPECT_EQ(all.after.dependencies, all.before.dependencies + 4) << "from each part to the next";
  std::uint64_t waits = 0;
  for (NodeId node = 0; node < all.graph.size(); ++node) waits += all.graph.nodes[node].waits;
  EXPECT_EQ(waits, all.after.dependencies);
  // The last launch and 5 kernels of 10 us behind it, as one.
  EXPECT_EQ(all.after.critical_path, 55'000'000U);
  EXPECT_EQ(critical_path(all.graph).size(), 6U);
}

TEST(ChakraOperators, ProbabilitiesThatAreReadLaterStay) {
  TorchAttention trace;
  trace.add_scores();
  trace.add_values();
  trace.add("aten::_softmax_backward_data", {{20, {2, 100, 160}}, trace.probabilities},
            {{21, {2, 100, 160}}});
  const TorchTrace::Fused all = trace.fuse();
  EXPECT_EQ(all.fused.attentions, 0U);
  EXPECT_EQ(all.fused.gone, 2U) << "scale and mask still run with the product";
  EXPECT_EQ(all.after.flops, all.before.flops);
}

TEST(ChakraOperators, WhatAPartReadsMustNotBeOverwrittenBeforeTheLast) {
  TorchAttention trace;
  trace.add_scores();
  trace.add("aten::zero_", {trace.keys}, {trace.keys});
  trace.add_values();
  EXPECT_EQ(trace.fuse().fused.attentions, 0U);
}

TEST(ChakraOperators, KernelsThatTellNoTensorsMayReadAll) {
  TorchAttention trace;
  trace.add_scores();
  trace.add_values();
  trace.add_unknown();
  const TorchTrace::Fused all = trace.fuse();
  EXPECT_EQ(all.fused.attentions, 0U);
  EXPECT_EQ(all.fused.gone, 1U) << "scores were overwritten by their product with the scale before";
  EXPECT_THAT(all.notes.front(), HasSubstr("1 tell no tensors"));
}

TEST(ChakraOperators, OtherStreamsAndPartsOfMemoryStayApart) {
  TorchAttention other;
  other.add_scores();
  other.stream = 9;
  other.add_values();
  EXPECT_EQ(other.fuse().fused.attentions, 0U);
  TorchAttention parts;
  parts.add_scores();
  parts.add("aten::zero_", {{15, {1}}}, {{15, {1}}});
  parts.add_values();
  EXPECT_EQ(parts.fuse().fused.attentions, 0U);
}

// Two kernels of one operator have its tensors both, and only the one that is named so its size.
TEST(ChakraOperators, OneOfSeveralKernelsOfAnOperatorHasItsSize) {
  TorchTrace trace;
  const auto tensors = io(8, {{1, {100, 64}}, {2, {64, 160}}}) + io(9, {{3, {100, 160}}}) +
                       attribute("op_schema", text(29, "aten::mm(Tensor self, Tensor mat2)")) +
                       int64_attribute("rf_id", 5);
  trace.add_kernel("ampere_fp16_gemm_splitK", tensors);
  trace.add_kernel("reduce_splitK", tensors);
  const TorchTrace::Fused all = trace.fuse();
  EXPECT_EQ(all.before.flops, 2.0 * 100 * 160 * 64);
  EXPECT_EQ(all.fused.gone, 0U);
}

}  // namespace
}  // namespace orrery::chakra_operators_test
