// SPDX-License-Identifier: Apache-2.0
// Whole models, built here without weights, against their published sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/config/library.h"
#include "sim/config/load.h"
#include "tests/unit/workloads/formats/onnx/imported.h"
#include "tests/unit/workloads/formats/onnx/models.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"

namespace orrery::onnx::onnx_models_test {
namespace {

TEST(OnnxModels, ResNet50HasItsPublishedMultiplyAddsAndParameters) {
  const std::string file = ResNet50().build();
  // torchvision: 25,557,032 parameters, 4.09 G multiply-adds; 1x1 to 7x7 filters and 2048 x 1000.
  const LoweredModel lowered = lowered_of(file, {{"batch", 1}});
  EXPECT_EQ(lowered.parameters, 25'557'032);
  const ImportedGraph graph = imported(file, {.dimensions = {{"batch", 1}}});
  EXPECT_EQ(matrix_flops(graph) / 2, 4'089'184'256.0);
  EXPECT_EQ(matrix_flops(imported(file, {.dimensions = {{"batch", 8}}})), 8 * matrix_flops(graph));
  // 53 convolutions with norms, sums and functions in them, two pools, one product.
  EXPECT_EQ(graph.size(), 56U);
}

TEST(OnnxModels, ResNet50ReadsItsWeightsAndWritesWhatConvolutionsMakeOnce) {
  const ImportedGraph graph = imported(ResNet50().build(), {.dimensions = {{"batch", 2}}});
  const Kernel first = kernel_at(graph, 0);
  EXPECT_EQ(first.kind, KernelClass::kConvolution);
  EXPECT_EQ(first.m, 2 * 112 * 112);
  EXPECT_EQ(first.n, 64);
  EXPECT_EQ(first.k, 3 * 7 * 7);
  // Image, filters and the shift that is left of the norm.
  EXPECT_EQ(first.read.base(), 4.0 * (2 * 3 * 224 * 224 + 64 * 3 * 7 * 7 + 64));
  EXPECT_EQ(first.written.base(), 4.0 * 2 * 64 * 112 * 112);
  // A shift and a Relu of each element of the result.
  EXPECT_EQ(first.vector_flops.base(), 2.0 * 2 * 64 * 112 * 112);
}

TEST(OnnxModels, ResNet50DoesWhatOurOwnListOfItsLayersDoes) {
  const std::string configs = ORRERY_SOURCE_DIR "/configs";
  const LayerGraph layers =
      config::load<LayerModelConfig>(configs + "/layer_models/resnet_50.yaml",
                                     config::Library(configs), "layer_models")
          .build({.samples = 16, .precision = Precision::kFp16, .fuses = true});
  double flops = 0, moved = 0;
  for (const Kernel& kernel : forward_kernels(layers)) {
    flops += kernel.matrix_flops.base();
    moved += (kernel.read + kernel.written).base();
  }
  const ImportedGraph graph =
      imported(ResNet50().build(), {.dimensions = {{"batch", 16}}, .precision = Precision::kFp16});
  EXPECT_EQ(matrix_flops(graph), flops);
  EXPECT_NEAR(bytes(graph), moved, 0.01 * moved);
}

TEST(OnnxModels, APrecisionOfItsOwnHalvesBytesAndKeepsFlops) {
  const std::string file = ResNet50().build();
  const ImportedGraph wide = imported(file, {.dimensions = {{"batch", 1}}});
  const ImportedGraph narrow =
      imported(file, {.dimensions = {{"batch", 1}}, .precision = Precision::kFp16});
  EXPECT_EQ(bytes(narrow), bytes(wide) / 2);
  EXPECT_EQ(matrix_flops(narrow), matrix_flops(wide));
  EXPECT_EQ(kernel_at(narrow, 0).precision, Precision::kFp16);
  EXPECT_EQ(kernel_at(wide, 0).precision, Precision::kFp32);
}

TEST(OnnxModels, BertBaseHasItsPublishedParametersAndTheFlopsOfItsLayers) {
  const std::string file = Bert().build();
  const LoweredModel lowered = lowered_of(file, {{"batch", 4}, {"length", 128}});
  // 109,482,240 of weights, and the constants of each layer: four scalars.
  EXPECT_EQ(lowered.parameters, 109'482'240 + 12 * 4);
  const ImportedGraph graph = imported(file, {.dimensions = {{"batch", 4}, {"length", 128}}});
  const double tokens = 4 * 128;
  const double layer = tokens * (4.0 * 768 * 768 + 2.0 * 768 * 3072) + 2.0 * tokens * 128 * 768;
  EXPECT_EQ(matrix_flops(graph), 2 * (12 * layer + 4 * 768.0 * 768));
  // A layer: three products, attention, a product with the norm behind, two of the MLP.
  EXPECT_EQ(count(graph, KernelClass::kAttentionPrefill), 12U);
  EXPECT_EQ(count(graph, KernelClass::kGemm), 12U * 6 + 1);
  EXPECT_LE(graph.size(), 12U * 7 + 8);
}

TEST(OnnxModels, AttentionOfBertKeepsItsScoresOnTheChip) {
  const ImportedGraph graph =
      imported(Bert().build(), {.dimensions = {{"batch", 4}, {"length", 128}}});
  const Kernel attention = first_of(graph, KernelClass::kAttentionPrefill);
  EXPECT_EQ(attention.batch, 4 * 12);
  EXPECT_EQ(attention.m, 128);
  EXPECT_EQ(attention.n, 128);
  EXPECT_EQ(attention.k, 64);
  const double tensor = 4.0 * 4 * 128 * 768;  // queries, keys, values, results
  EXPECT_EQ(attention.written.base(), tensor);
  EXPECT_EQ(attention.read.base(), 3 * tensor + 4 * (4.0 * 128 + 1)) << "mask and scale";
}

TEST(OnnxModels, ADecodeStepOfLlamaReadsEachWeightAndTheCacheOnce) {
  const int layers = 2;
  const std::string file = Llama(layers).build();
  const std::map<std::string, std::int64_t> sizes = {
      {"batch", 8}, {"length", 1}, {"past", 1023}, {"total", 1024}};
  const LoweredModel lowered = lowered_of(file, sizes);
  const double layer_weights = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  // 6,738,415,616 of the whole model with 32 of these.
  EXPECT_EQ(lowered.parameters, layers * (layer_weights + 2 * 4096) + 2.0 * 32000 * 4096 + 4096);
  const ImportedGraph graph = imported(file, {.dimensions = sizes});
  const double attention = 2.0 * 8 * 1024 * 4096;  // multiply-adds of scores and values
  EXPECT_EQ(matrix_flops(graph),
            2 * (layers * (8 * layer_weights + attention) + 8 * 4096.0 * 32000));
  EXPECT_EQ(count(graph, KernelClass::kAttentionDecode), 2U);
  const Kernel core = first_of(graph, KernelClass::kAttentionDecode);
  EXPECT_EQ(core.batch, 8 * 32);
  EXPECT_EQ(core.n, 1024);
  EXPECT_NEAR(core.read.base(), 2.0 * 2 * 8 * 1024 * 4096, 0.01 * core.read.base());
  // The file puts new keys behind the old ones in a copy: cache read and written once more.
  const double weights = 2 * (layers * layer_weights + 4096.0 * 32000);
  const double cache = 2.0 * 2 * 8 * 1024 * 4096 * layers;
  EXPECT_NEAR(bytes(graph), weights + 3 * cache, 0.01 * bytes(graph));
}

TEST(OnnxModels, NormsAndRotationsOfLlamaBecomeFewKernels) {
  const ImportedGraph graph =
      imported(Llama(4).build(),
               {.dimensions = {{"batch", 1}, {"length", 512}, {"past", 0}, {"total", 512}}});
  // A layer: a norm, three products with rotations, two copies into the cache, attention, a product
  // and the sum with its norm in it, gate, up, down.
  EXPECT_LE(graph.size(), 4U * 12 + 4);
  EXPECT_EQ(count(graph, KernelClass::kGemm), 4U * 7 + 1);
}

TEST(OnnxModels, UnfusedKernelsHaveTheSameFlopsAndMoreBytes) {
  const std::string file = Bert().build();
  const std::map<std::string, std::int64_t> sizes = {{"batch", 1}, {"length", 64}};
  const ImportedGraph fused = imported(file, {.dimensions = sizes});
  const ImportedGraph apart = imported(file, {.dimensions = sizes, .fuse = false});
  EXPECT_EQ(matrix_flops(fused), matrix_flops(apart));
  EXPECT_EQ(vector_flops(fused), vector_flops(apart));
  EXPECT_LT(bytes(fused), bytes(apart));
  EXPECT_LT(fused.size(), apart.size() / 3);
}

}  // namespace
}  // namespace orrery::onnx::onnx_models_test
