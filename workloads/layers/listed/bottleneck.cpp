// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

constexpr std::int64_t kExpansion = 4;

/// The block of He et al. 2016, figure 5, right: 1x1, 3x3, 1x1, each with a batch norm. The stride
/// is that of the 3x3 (ResNet v1.5), as torchvision has it.
struct BottleneckLayer final : ListedLayer {
  BottleneckLayer() { kind = "bottleneck"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int time) const override {
    const std::size_t input = inputs.front();
    const std::int64_t step = time == 0 ? stride : 1;
    const bool projects = step > 1 || graph.extent(input).channels != kExpansion * channels;
    const auto part = [&graph](const std::string& what, std::size_t value,
                               const ConvolutionShape& shape, ActivationFunction function) {
      return convolve_normed(graph, what, value, shape, {NormMethod::kBatch, function});
    };
    using F = ActivationFunction;
    const ConvolutionShape widened{.channels = kExpansion * channels};
    const ConvolutionShape projected{.channels = kExpansion * channels, .stride = step};
    std::size_t value = part("narrow", input, {.channels = channels}, F::kRelu);
    value = part("filter", value, {.channels = channels, .size = 3, .stride = step}, F::kRelu);
    value = part("widen", value, widened, F::kNone);
    const std::size_t way = projects ? part("project", input, projected, F::kNone) : input;
    value = activate(graph, "activation", add_tensors(graph, "sum", value, way), F::kRelu);
    graph.held({input});
    return value;
  }

  std::int64_t channels = 0, stride = 1;
  static const config::Schema<BottleneckLayer>& schema() {
    using L = BottleneckLayer;
    using config::between;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("bottleneck", "a block of ResNet-50, with a way around it")
            .required("channels", &L::channels,
                      "channels inside; its result has four times as many",
                      between(1, kMostChannels))
            .optional("stride", &L::stride, "stride of its first repetition", between(1, 16));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<BottleneckLayer> added_bottleneck(
    "bottleneck", "a block of ResNet-50");

}  // namespace
}  // namespace orrery
