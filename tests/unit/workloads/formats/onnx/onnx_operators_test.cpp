// SPDX-License-Identifier: Apache-2.0
// Operators of ONNX alone: shapes, FLOPs and bytes by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/config/diagnostics.h"
#include "tests/unit/workloads/formats/onnx/imported.h"
#include "tests/unit/workloads/formats/onnx/writer.h"

namespace orrery::onnx::onnx_operators_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A model of one operator, all of its results asked for.
std::string alone(GraphWriter& g, int results = 1) {
  for (int i = 0; i < results; ++i) g.output(g.result(i));
  return model(g);
}

Dims shape(const std::string& file, std::size_t output = 0) {
  const LoweredModel lowered = lowered_of(file);
  return lowered.values[lowered.outputs.at(output)].dims;
}

std::string refusal(const std::string& file,
                    const std::map<std::string, std::int64_t>& dimensions = {}) {
  try {
    lowered_of(file, dimensions);
  } catch (const config::ConfigError& error) {
    return error.what();
  }
  return {};
}

TEST(OnnxOperators, GroupsOfAConvolutionShareItsMultiplyAdds) {
  const auto conv = [](int groups) {
    GraphWriter g;
    g.input("x", {2, 32, 20, 20});
    g.weight("w", {64, 32 / groups, 3, 3});
    g.add("Conv", {"x", "w"}, {integer("group", groups), integers("pads", {1, 1, 1, 1})});
    return imported(alone(g));
  };
  const double all = 2.0 * 2 * 20 * 20 * 64 * 32 * 9;
  EXPECT_EQ(matrix_flops(conv(1)), all);
  EXPECT_EQ(matrix_flops(conv(4)), all / 4);
  EXPECT_EQ(kernel_at(conv(4), 0).batch, 4);
  EXPECT_EQ(kernel_at(conv(4), 0).n, 16);
}

TEST(OnnxOperators, DepthwiseConvolutionsRunOnVectorLanes) {
  GraphWriter g;
  g.input("x", {1, 32, 16, 16});
  g.weight("w", {32, 1, 3, 3});
  g.add("Conv", {"x", "w"},
        {integer("group", 32), integers("strides", {2, 2}), word("auto_pad", "SAME_UPPER")});
  const std::string file = alone(g);
  EXPECT_THAT(shape(file), ElementsAre(1, 32, 8, 8));
  EXPECT_EQ(matrix_flops(imported(file)), 0);
  EXPECT_EQ(vector_flops(imported(file)), 2.0 * 32 * 8 * 8 * 9);
}

TEST(OnnxOperators, TransposedConvolutionsMultiplyEveryInputByTheWholeWindow) {
  GraphWriter g;
  g.input("x", {1, 16, 10, 10});
  g.weight("w", {16, 8, 4, 4});
  g.add("ConvTranspose", {"x", "w"}, {integers("strides", {2, 2}), integers("pads", {1, 1, 1, 1})});
  const std::string file = alone(g);
  EXPECT_THAT(shape(file), ElementsAre(1, 8, 20, 20));
  EXPECT_EQ(matrix_flops(imported(file)), 2.0 * 100 * 16 * 8 * 16);
}

TEST(OnnxOperators, BatchedProductsWithOneRightMatrixAreOneProduct) {
  GraphWriter g;
  g.input("x", {4, 8, 32});
  g.weight("w", {32, 64});
  g.add("MatMul", {"x", "w"});
  const Kernel kernel = kernel_at(imported(alone(g)), 0);
  EXPECT_EQ(kernel.batch, 1);
  EXPECT_EQ(kernel.m, 32);
  EXPECT_EQ(kernel.read.base(), 4.0 * (4 * 8 * 32 + 32 * 64));
  GraphWriter apart;
  apart.input("x", {4, 1, 8, 32});
  apart.input("y", {3, 32, 64});
  apart.add("MatMul", {"x", "y"});
  const std::string file = alone(apart);
  EXPECT_THAT(shape(file), ElementsAre(4, 3, 8, 64));
  EXPECT_EQ(kernel_at(imported(file), 0).batch, 12);
}

TEST(OnnxOperators, ShapesThatArithmeticMakesAreFollowed) {
  GraphWriter g;
  g.input("x", {6, 20, 8});
  const std::string dims = g.add("Shape", {"x"});
  const std::string rows = g.add("Gather", {dims, g.constant({0})});
  const std::string half =
      g.add("Div", {g.add("Gather", {dims, g.constant({1})}), g.constant({2})});
  const std::string asked = g.add("Concat", {rows, half, g.constant({-1})}, {integer("axis", 0)});
  g.add("Relu", {g.add("Reshape", {"x", asked})});
  const std::string file = alone(g);
  EXPECT_THAT(shape(file), ElementsAre(6, 10, 16));
  EXPECT_EQ(imported(file).size(), 1U) << "arithmetic on shapes and views cost nothing";
}

TEST(OnnxOperators, ProductsOfWidenedOperandsRunInWhatTheyWereWidenedFrom) {
  GraphWriter g;
  g.input("x", {16, 64});
  g.weight("scale", {});
  g.weight("zero", {}, kInt8);
  const std::string x =
      g.add("DequantizeLinear", {g.add("QuantizeLinear", {"x", "scale", "zero"}), "scale", "zero"});
  const std::string w =
      g.add("DequantizeLinear", {g.weight("w", {64, 32}, kInt8), "scale", "zero"});
  g.add("MatMul", {x, w});
  const ImportedGraph graph = imported(alone(g));
  ASSERT_EQ(graph.size(), 2U) << "the two widenings go";
  const Kernel product = first_of(graph, KernelClass::kGemm);
  EXPECT_EQ(product.precision, Precision::kInt8);
  EXPECT_EQ(product.read.base(), 16.0 * 64 + 64 * 32);
  EXPECT_EQ(product.written.base(), 4.0 * 16 * 32);
}

TEST(OnnxOperators, AttentionWithACacheReadsPastAndNewKeys) {
  GraphWriter g;
  g.input("q", {2, 1, 512}, kHalf);
  g.input("k", {2, 1, 128}, kHalf);
  g.input("v", {2, 1, 128}, kHalf);
  g.input("past_k", {2, 2, 99, 64}, kHalf);
  g.input("past_v", {2, 2, 99, 64}, kHalf);
  g.add("GroupQueryAttention", {"q", "k", "v", "past_k", "past_v"},
        {integer("num_heads", 8), integer("kv_num_heads", 2)}, 3, "com.microsoft");
  const std::string file = alone(g, 3);
  EXPECT_THAT(shape(file), ElementsAre(2, 1, 512));
  EXPECT_THAT(shape(file, 1), ElementsAre(2, 2, 100, 64));
  const Kernel kernel = kernel_at(imported(file), 0);
  EXPECT_EQ(kernel.kind, KernelClass::kAttentionDecode);
  EXPECT_EQ(kernel.attention.kv_heads, 2);
  EXPECT_EQ(kernel.matrix_flops.base(), 2.0 * 2 * 8 * 100 * (64 + 64));
  EXPECT_EQ(kernel.read.base(), 2.0 * (2 * 512 + 2 * 2 * 128 + 2 * 2 * 2 * 99 * 64));
  EXPECT_EQ(kernel.written.base(), 2.0 * (2 * 512 + 2 * 2 * 128)) << "new tokens alone";
}

TEST(OnnxOperators, CausalAttentionComputesHalfOfTheSquareAndTheDiagonal) {
  GraphWriter g;
  for (const char* name : {"q", "k", "v"}) g.input(name, {1, 4, 100, 64}, kHalf);
  g.add("Attention", {"q", "k", "v"}, {integer("is_causal", 1)});
  EXPECT_EQ(matrix_flops(imported(alone(g))), 2.0 * 4 * (100 * 101 / 2.0) * (64 + 64));
}

TEST(OnnxOperators, PackedAttentionIsAProductAndACore) {
  GraphWriter g;
  g.input("x", {2, 32, 256});
  g.weight("w", {256, 768});
  g.weight("b", {768});
  g.add("Attention", {"x", "w", "b"}, {integer("num_heads", 4)}, 1, "com.microsoft");
  const ImportedGraph graph = imported(alone(g));
  ASSERT_EQ(graph.size(), 2U);
  EXPECT_EQ(kernel_at(graph, 0).matrix_flops.base(), 2.0 * 64 * 256 * 768);
  EXPECT_EQ(kernel_at(graph, 1).matrix_flops.base(), 2.0 * 2 * 32 * 32 * (256 + 256));
  EXPECT_EQ(graph.nodes[1].waits, 1U);
}

TEST(OnnxOperators, RecurrentLayersRunAStepAfterTheOther) {
  GraphWriter g;
  g.input("x", {10, 4, 32});
  g.weight("w", {2, 4 * 16, 32});
  g.weight("r", {2, 4 * 16, 16});
  g.add("LSTM", {"x", "w", "r"}, {integer("hidden_size", 16), word("direction", "bidirectional")},
        3);
  const std::string file = alone(g, 3);
  EXPECT_THAT(shape(file), ElementsAre(10, 2, 4, 16));
  const ImportedGraph graph = imported(file);
  EXPECT_EQ(graph.size(), 11U);
  EXPECT_EQ(matrix_flops(graph), 2.0 * 2 * 10 * 4 * 64 * (32 + 16));
}

TEST(OnnxOperators, FunctionsOfTheFileAreTheirBodies) {
  const std::string body =
      function("custom", "ScaledRelu", {"a", "s"}, {"b"},
               {node("Mul", {"a", "s"}, {"m"}),
                node("LeakyRelu", {"m"}, {"b"}, {reference("alpha", "slope")})},
               {"slope"});
  GraphWriter g;
  g.input("x", {8, 8});
  g.input("s", {1});
  g.add("ScaledRelu", {"x", "s"}, {real("slope", 0.1F)}, 1, "custom");
  g.output(g.result(0));
  std::vector<std::string> notes;
  const ImportedGraph graph = imported(model(g, 17, {body}), {}, &notes);
  EXPECT_EQ(vector_flops(graph), 3.0 * 64);
  EXPECT_TRUE(notes.empty());
}

TEST(OnnxOperators, LoopsRunAsOftenAsTheySay) {
  GraphWriter body;
  body.input("i", {}, kInt64);
  body.input("go", {}, kBool);
  body.input("h", {16, 16});
  body.output(body.add("Identity", {"go"}), {}, kBool);
  body.output(body.add("MatMul", {"h", "w"}));
  GraphWriter g;
  g.input("x", {16, 16});
  g.weight("w", {16, 16});
  g.add("Loop", {g.scalar(5), "", "x"}, {graph("body", body.text())});
  EXPECT_EQ(matrix_flops(imported(alone(g))), 5 * 2.0 * 16 * 16 * 16);
}

TEST(OnnxOperators, TheFirstBranchIsTakenWhereOnlyARunCanTell) {
  GraphWriter wide, narrow;
  wide.output(wide.add("MatMul", {"x", "x"}));
  narrow.output(narrow.add("Relu", {"x"}));
  GraphWriter g;
  g.input("x", {16, 16});
  g.input("c", {}, kBool);
  g.add("If", {"c"}, {graph("then_branch", wide.text()), graph("else_branch", narrow.text())});
  std::vector<std::string> notes;
  const ImportedGraph graph = imported(alone(g), {}, &notes);
  EXPECT_EQ(matrix_flops(graph), 2.0 * 16 * 16 * 16);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("the first is taken")));
}

TEST(OnnxOperators, WhatNoRuleKnowsIsListedAndReadsAndWritesItsTensors) {
  GraphWriter g;
  g.input("x", {100, 10});
  g.add("Mystery", {"x"}, {}, 1, "somebody");
  std::vector<std::string> notes;
  const ImportedGraph graph = imported(alone(g), {}, &notes);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("somebody:Mystery (1)")));
  ASSERT_EQ(graph.size(), 1U);
  EXPECT_FALSE(graph.works[0].classified);
  EXPECT_EQ(bytes(graph), 2 * 4.0 * 1000);
}

TEST(OnnxOperators, DimensionsWithoutASizeAreNamedWithTheirInputs) {
  GraphWriter g;
  g.input("ids", {"batch", "length"});
  g.input("mask", {"batch", 3});
  g.add("Relu", {"ids"});
  const std::string file = alone(g);
  EXPECT_THAT(refusal(file, {{"length", 4}}),
              HasSubstr("'batch' of 'ids', 'mask': --set graph.dimensions.batch=1"));
  EXPECT_THAT(refusal(file, {{"length", 4}, {"batch", 2}, {"bacth", 2}}),
              HasSubstr("no input has a dimension 'bacth'; there are: batch, length"));
  EXPECT_EQ(refusal(file, {{"length", 4}, {"batch", 2}}), "");
}

TEST(OnnxOperators, MistakesNameTheOperatorAndItsPlaceInTheFile) {
  GraphWriter g;
  g.input("x", {8, 8});
  g.add("MatMul", {"x", g.weight("w", {7, 8})});
  EXPECT_THAT(
      refusal(alone(g)),
      testing::MatchesRegex("model.onnx: node 'MatMul0' .MatMul. at offset [0-9]+: a product "
                            "of 8x8 and 7x8"));
  GraphWriter absurd;
  absurd.input("x", {1 << 30, 1 << 30});
  absurd.add("Relu", {"x"});
  EXPECT_THAT(refusal(alone(absurd)), HasSubstr("input 'x' has more than 2^53 elements"));
  GraphWriter nobody;
  nobody.input("x", {8, 8});
  nobody.add("Add", {"x", "y"});
  EXPECT_THAT(refusal(alone(nobody)), HasSubstr("nothing before it makes its input 'y'"));
}

TEST(OnnxOperators, FunctionsThatCallThemselvesAreRefused) {
  const std::string body =
      function("custom", "F", {"a"}, {"b"}, {node("F", {"a"}, {"b"}, {}, "custom")});
  GraphWriter g;
  g.input("x", {8});
  g.output(g.add("F", {"x"}, {}, 1, "custom"));
  EXPECT_THAT(refusal(model(g, 17, {body})), HasSubstr("nested more than 64 deep"));
}

TEST(OnnxOperators, ModelsAreRecognisedByTheirFirstFields) {
  const GraphFormat& onnx = *GraphFormatRegistry::at("graph format", "onnx");
  GraphWriter g;
  g.output(g.input("x", {1}));
  EXPECT_TRUE(onnx.recognises(model(g), "somewhere"));
  EXPECT_TRUE(onnx.recognises("anything", "a.onnx"));
  EXPECT_FALSE(onnx.recognises("{\"traceEvents\": []}", "a.json"));
  EXPECT_FALSE(onnx.recognises("", "a.et"));
}

}  // namespace
}  // namespace orrery::onnx::onnx_operators_test
