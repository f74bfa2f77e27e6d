// SPDX-License-Identifier: Apache-2.0
// A kind of listed layer in one file: its passes, parameters and memory.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/config/load.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/layer_step.h"

namespace orrery::added_layer_test {
namespace {

/// Each channel times a weight, and a copy of its channels in another order.
struct ScaledShuffle final : ListedLayer {
  ScaledShuffle() { kind = "scaled_shuffle"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    const Extent extent = graph.extent(inputs.front());
    const auto pass = [&](const char* what, ElementCost cost) {
      return stream(graph.pass(), what, KernelClass::kElementwise, extent, cost);
    };
    const std::size_t scaled = graph.add({.name = "scale",
                                          .inputs = inputs,
                                          .result = extent,
                                          .parameters = extent.channels,
                                          .forward = {pass("scale", {1, 1, 1})},
                                          .gradient = {pass("scale backward", {2, 1, 2})},
                                          .keeps_inputs = true,
                                          .epilogue = true});
    return graph.add({.name = "shuffle",
                      .inputs = {scaled},
                      .result = {extent.channels, extent.rows, groups * extent.columns},
                      .forward = {pass("shuffle", {1, 1, 0})},
                      .gradient = {pass("shuffle backward", {1, 1, 0})}});
  }

  std::int64_t groups = 1;
  static const config::Schema<ScaledShuffle>& schema() {
    static const config::Schema<ScaledShuffle> schema =
        listed_layer_schema<ScaledShuffle>("scaled_shuffle", "channels times weights, shuffled")
            .optional("groups", &ScaledShuffle::groups, "copies of each position",
                      config::between(1, 8));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ScaledShuffle> added_shuffle(
    "scaled_shuffle", "channels times weights, shuffled");

/// 4 channels at 2 x 2, through a matrix to 8 and the added layer.
LayerGraph graph_in(const PassContext& pass, const std::string& keys = "") {
  config::Diagnostics diagnostics;
  const config::Node node = config::parse_yaml(
      "layer_model: test\ninput: {channels: 4, rows: 2, columns: 2}\n"
      "layers: [{kind: dense, bias: false, channels: 8}, {kind: scaled_shuffle" +
          keys + "}]\n",
      "test.yaml", diagnostics);
  const auto model = config::read<LayerModelConfig>(node, diagnostics,
                                                    config::Library(ORRERY_SOURCE_DIR "/configs"));
  diagnostics.throw_if_errors();
  return model.build(pass);
}

std::vector<std::string> kernel_names(const Program& program) {
  std::vector<std::string> names;
  for (const Kernel& kernel : program.kernels) names.push_back(kernel.name);
  return names;
}

TEST(AddedLayer, IsFoundByItsKindAndReadsItsKeys) {
  EXPECT_EQ(graph_in({}).parameters(), 4 * 8 + 8);
  const LayerGraph twice = graph_in({}, ", groups: 2");
  EXPECT_EQ(twice.tensors()[twice.result()].extent, (Extent{8, 2, 4}));
  EXPECT_THROW(graph_in({}, ", groups: 9"), config::ConfigError);
}

TEST(AddedLayer, TrainsByTheGradientsOfItsOperationsInReverse) {
  const std::vector<std::string> names = {"dense 0 matrix",
                                          "scaled_shuffle 1 scale",
                                          "scaled_shuffle 1 shuffle",
                                          "loss",
                                          "scaled_shuffle 1 shuffle: shuffle backward",
                                          "scaled_shuffle 1 scale: scale backward",
                                          "dense 0 matrix: matrix wgrad",
                                          "optimizer"};
  EXPECT_EQ(kernel_names(layer_program(graph_in({.training = true}), {})), names);
}

TEST(AddedLayer, RunsItsEpilogueInTheProductBeforeIt) {
  const std::vector<std::string> names = {"dense 0 matrix", "scaled_shuffle 1 shuffle"};
  EXPECT_EQ(kernel_names(layer_program(graph_in({.fuses = true}), {})), names);
}

// In fp32: the input is 64 bytes, all other tensors 128. Gradients read the input and what the
// matrix gives. Most is there while the first gradient runs: those two, what was shuffled, and
// gradients of that and of what the weights scaled.
TEST(AddedLayer, KeepsWhatItsGradientReads) {
  const MemoryProfile profile = tensor_profile(graph_in({.training = true}));
  EXPECT_EQ(profile.at_peak(TensorRole::kActivation), Bytes(64 + 128));
  EXPECT_EQ(profile.peak(), Bytes(64 + 128 + 128 + 2 * 128));
}

}  // namespace
}  // namespace orrery::added_layer_test
