// SPDX-License-Identifier: Apache-2.0
// Models as lists of layers: sizes against what was published, conservation over folding, memory by
// hand.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/config/load.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"

namespace orrery::layer_models_test {
namespace {

const std::string kConfigs = ORRERY_SOURCE_DIR "/configs";

LayerGraph graph_of(const std::string& name, const PassContext& pass = {}) {
  return config::load<LayerModelConfig>(kConfigs + "/layer_models/" + name + ".yaml",
                                        config::Library(kConfigs), "layer_models")
      .build(pass);
}

LayerModelConfig listed(const std::string& text) {
  config::Diagnostics diagnostics;
  const config::Library library(kConfigs);
  const config::Node node = config::parse_yaml(text, "test.yaml", diagnostics);
  auto model = config::read<LayerModelConfig>(node, diagnostics, library);
  diagnostics.throw_if_errors();
  return model;
}

PassContext inference(Precision precision, bool fuses = true) {
  PassContext pass;
  pass.precision = precision;
  pass.fuses = fuses;
  return pass;
}

PassContext training(std::int64_t samples) {
  PassContext pass;
  pass.samples = samples;
  pass.precision = Precision::kBf16;
  pass.training = true;
  return pass;
}

struct Published {
  const char* name;
  std::int64_t parameters;
  double multiply_adds;  ///< multiply-adds of a sample
  double tolerance;      ///< what the published figure is rounded to
  const char* source;
};

// Parameters to the last one: of torchvision 0.15 (resnet50, mobilenet_v2, vit_b_16), of Caffe's
// bvlc_alexnet, of transformers' gpt2, of facebookresearch/DiT and of the code of Ho et al.
const Published kPublished[] = {
    {"resnet_50", 25'557'032, 4.089e9, 0.001, "torchvision: 4.09 GFLOPS (multiply-adds)"},
    {"mobilenet_v2", 3'504'872, 0.300e9, 0.01, "Sandler et al. 2018, table 4: 300 M"},
    {"vit_b_16", 86'567'656, 17.56e9, 0.01, "torchvision: 17.56 GFLOPS (multiply-adds)"},
    {"alexnet", 60'965'224, 0.724e9, 0.01, "Caffe's bvlc_alexnet, 724 M multiply-adds"},
    {"gpt2", 124'439'808, 0, 0, "Hugging Face, openai-community/gpt2"},
    {"dit_xl_2", 675'129'632, 118.64e9, 0.01, "Peebles and Xie 2023, table 4: 118.64 Gflops"},
    {"ddpm_cifar10", 35'746'307, 0, 0, "Ho et al. 2020, appendix B: 35.7 million"},
    {"digits_1989", 9'760, 63'660, 0, "LeCun et al. 1989, section 4: 9,760; 64,660 connections"},
};

TEST(LayerModels, HaveThePublishedParametersAndMultiplyAdds) {
  for (const Published& row : kPublished) {
    const LayerGraph graph = graph_of(row.name);
    EXPECT_EQ(graph.parameters(), row.parameters) << row.name << ": " << row.source;
    if (row.multiply_adds > 0) {
      EXPECT_NEAR(static_cast<double>(graph.multiply_adds()), row.multiply_adds,
                  row.tolerance * row.multiply_adds)
          << row.name << ": " << row.source;
    }
  }
}

// 256 inputs, 768 and 192 units in maps, 30 and 10; every unit has a bias, which is a connection.
TEST(LayerModels, TheDigitNetworkOf1989HasItsUnitsAndConnections) {
  const LayerGraph graph = graph_of("digits_1989");
  std::vector<std::int64_t> units;
  for (const ListedOp& op : graph.ops())
    if (op.multiply_adds > 0) units.push_back(op.result.elements());
  EXPECT_EQ(graph.tensors().front().extent.elements(), 256);
  EXPECT_EQ(units, (std::vector<std::int64_t>{768, 192, 30, 10}));
  EXPECT_EQ(graph.multiply_adds() + 768 + 192 + 30 + 10, 64'660);
}

// Lin et al. 2020, MCUNet, figure 1 and table 1: weights and peak activations of ResNet-50 (102 MB,
// 7.2 MB) and MobileNetV2 (13.6 MB, 6.8 MB; 3.4 MB and 1.7 MB of int8). The paper rounds the
// parameters of MobileNetV2 to 3.4 million, of 3.50.
TEST(LayerModels, HaveThePublishedBytesOfWeightsAndActivations) {
  const auto peak = [](const char* name, Precision precision) {
    return tensor_profile(graph_of(name, inference(precision))).peak().base() / 1e6;
  };
  const auto weights = [](const char* name, Precision precision) {
    return static_cast<double>(graph_of(name).parameters()) * element_bytes(precision) / 1e6;
  };
  EXPECT_NEAR(weights("resnet_50", Precision::kFp32), 102, 0.5);
  EXPECT_NEAR(weights("mobilenet_v2", Precision::kFp32), 13.6, 0.035 * 13.6);
  EXPECT_NEAR(weights("mobilenet_v2", Precision::kInt8), 3.4, 0.035 * 3.4);
  EXPECT_NEAR(peak("resnet_50", Precision::kFp32), 7.2, 0.05);
  EXPECT_NEAR(peak("mobilenet_v2", Precision::kFp32), 6.8, 0.05);
  EXPECT_NEAR(peak("mobilenet_v2", Precision::kInt8), 1.7, 0.05);
}

// The first block of ResNet-50, by hand: its input of 64 channels, which the caller holds, and 256
// channels twice, of its own way and of the way around, at 56 x 56.
TEST(LayerModels, TheFullestMomentOfResNetIsItsFirstSum) {
  EXPECT_EQ(tensor_profile(graph_of("resnet_50", inference(Precision::kFp32))).peak(),
            Bytes((64 + 256 + 256) * 56.0 * 56 * 4));
}

Flops matrix_flops(const std::vector<Kernel>& kernels) {
  Flops sum;
  for (const Kernel& kernel : kernels) sum += kernel.matrix_flops;
  return sum;
}
Bytes moved(const std::vector<Kernel>& kernels) {
  Bytes sum;
  for (const Kernel& kernel : kernels) sum += kernel.read + kernel.written;
  return sum;
}

TEST(LayerModels, FoldingKeepsFlopsAndLeavesOutBytesAndKernels) {
  for (const Published& row : kPublished) {
    const auto folded = forward_kernels(graph_of(row.name, inference(Precision::kFp16)));
    const auto apart = forward_kernels(graph_of(row.name, inference(Precision::kFp16, false)));
    EXPECT_EQ(matrix_flops(folded), matrix_flops(apart)) << row.name;
    EXPECT_LT(folded.size(), apart.size()) << row.name;
    EXPECT_LT(moved(folded), moved(apart)) << row.name;
  }
}

// The first layer of the digit network sees one channel and makes twelve: a product of 25 terms.
// Filters of MobileNetV2 that see one channel make one, which no other result shares operands with.
TEST(LayerModels, DepthwiseFiltersAloneRunOnVectorLanes) {
  const auto of_matrix = [](const char* name) {
    return matrix_flops(forward_kernels(graph_of(name, inference(Precision::kInt8)))).base() / 2;
  };
  EXPECT_EQ(of_matrix("digits_1989"), 63'660);
  double depthwise = 0;
  const LayerGraph mobile = graph_of("mobilenet_v2");
  for (const ListedOp& op : mobile.ops())
    if (op.name.ends_with(" filter")) depthwise += static_cast<double>(op.multiply_adds);
  EXPECT_EQ(of_matrix("mobilenet_v2") + depthwise, static_cast<double>(mobile.multiply_adds()));
  EXPECT_GT(depthwise, 0);
}

// ResNet-50 in inference: 53 convolutions, two pools and a matrix; all else is done by them.
TEST(LayerModels, ResNetIsItsConvolutionsWhereNormsAndSumsAreFolded) {
  EXPECT_EQ(forward_kernels(graph_of("resnet_50", inference(Precision::kFp16))).size(), 56U);
}

// A product of the forward pass has two of its size in the backward pass, the first layer's one.
TEST(LayerModels, TrainingHasThreeTimesTheFlopsLessTheFirstGradient) {
  const LayerGraph graph = graph_of("resnet_50", training(8));
  const double forward = matrix_flops(forward_kernels(graph)).base();
  const double first = matrix_flops(graph.ops().front().forward).base();
  EXPECT_DOUBLE_EQ(matrix_flops(layer_program(graph, {}).kernels).base() + first, 3 * forward);
}

// Operations in front of all weights have no gradient and keep nothing for one.
TEST(LayerModels, NothingInFrontOfAllWeightsHasAGradient) {
  const std::string start =
      "layer_model: test\ninput: {channels: 4, rows: 8, columns: 8}\nlayers: ";
  const std::string dense = "{kind: dense, channels: 4}]\n";
  const auto trained = [&](const std::string& layers) {
    return listed(start + layers + dense).build(training(1));
  };
  const LayerGraph normed = trained("[{kind: norm, method: local}, ");
  for (const Kernel& kernel : layer_program(normed, {}).kernels)
    EXPECT_FALSE(kernel.name.ends_with("norm backward"));
  // The input is there until it is normed, and nobody needs it later.
  EXPECT_EQ(tensor_profile(normed).peak(), tensor_profile(trained("[")).peak());
}

TEST(LayerModels, ReplicasAddUpEveryGradientOnce) {
  const Program program = layer_program(graph_of("vit_b_16", training(2)), {.dp = 8});
  Bytes reduced;
  for (const Transfer& transfer : program.transfers) reduced += transfer.bytes;
  EXPECT_EQ(reduced, Bytes(4.0 * 86'567'656));
  // 346 MB in buckets that are sent once they hold 25 MiB.
  EXPECT_GE(program.transfers.size(), 5U);
  EXPECT_LE(program.transfers.size(), 14U);
}

TEST(LayerModels, ActivationsOfTrainingGrowWithSamplesAndWeightsDoNot) {
  const MemoryUse small = layer_step_memory(graph_of("resnet_50", training(1)), {});
  const MemoryUse large = layer_step_memory(graph_of("resnet_50", training(2)), {});
  EXPECT_EQ(large.activations, 2 * small.activations);
  EXPECT_EQ(large.weights, small.weights);
  EXPECT_EQ(large.optimizer, small.optimizer);
}

struct WrongList {
  const char* layers;
  const char* path;
  const char* message;
};
const WrongList kWrong[] = {
    {"{kind: convolution, channels: 8, groups: 3}", "layers.0.groups", "divide"},
    {"{kind: convolution, channels: 8, size: 99, padding: 0}", "layers.0.size", "larger"},
    {"{kind: convolution, channels: 8, fan_in: 99}", "layers.0.fan_in", "at most"},
    {"{kind: add}", "layers.0.from", "two inputs"},
    {"{kind: dense, channels: 8, from: [nobody]}", "layers.0.from", "no layer before it"},
    {"{kind: transformer, heads: 3}", "layers.0.heads", "do not divide"},
    {"{kind: pool, size: 99}", "layers.0.size", "larger"},
    {"{kind: convolution, name: a, channels: 8}, {kind: pool, name: b}, {kind: concat, from: [a, "
     "b]}",
     "layers.2.from", "side by side"},
    {"{kind: convolution, name: a, channels: 8}, {kind: pool, name: b}, {kind: add, from: [a, b]}",
     "layers.2.from", "do not add up"},
};

TEST(LayerModels, WhatDoesNotGoTogetherIsRefusedAtItsKey) {
  for (const WrongList& wrong : kWrong) {
    const LayerModelConfig model =
        listed(std::string("layer_model: test\ninput: {channels: 4, rows: 16, columns: 16}\n") +
               "layers: [" + wrong.layers + "]\n");
    try {
      model.build({});
      ADD_FAILURE() << wrong.layers;
    } catch (const config::KeyError& error) {
      EXPECT_EQ(error.paths().front(), wrong.path);
      EXPECT_NE(error.message().find(wrong.message), std::string::npos) << error.message();
    }
  }
}

}  // namespace
}  // namespace orrery::layer_models_test
