// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// The block of MobileNetV2 (Sandler et al. 2018, table 1): widened by a 1x1 with ReLU6, filtered
/// channel by channel, narrowed without a function.
struct InvertedResidualLayer final : ListedLayer {
  InvertedResidualLayer() { kind = "inverted_residual"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int time) const override {
    const std::size_t input = inputs.front();
    const std::int64_t step = time == 0 ? stride : 1;
    const std::int64_t given = graph.extent(input).channels, wide = given * expansion;
    const auto part = [&graph](const std::string& what, std::size_t value,
                               const ConvolutionShape& shape, ActivationFunction function) {
      return convolve_normed(graph, what, value, shape, {NormMethod::kBatch, function});
    };
    using F = ActivationFunction;
    std::size_t value = input;
    if (expansion > 1) value = part("widen", value, {.channels = wide}, F::kRelu6);
    value = part("filter", value, {.channels = wide, .size = 3, .stride = step, .groups = wide},
                 F::kRelu6);
    value = part("narrow", value, {.channels = channels}, F::kNone);
    if (step == 1 && given == channels) value = add_tensors(graph, "sum", value, input);
    graph.held({input});
    return value;
  }

  std::int64_t channels = 0, expansion = 6, stride = 1;
  static const config::Schema<InvertedResidualLayer>& schema() {
    using L = InvertedResidualLayer;
    using config::between;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("inverted_residual", "a block of MobileNetV2")
            .required("channels", &L::channels, "channels of its result", between(1, kMostChannels))
            .optional("expansion", &L::expansion, "channels inside for one of its input",
                      between(1, 64))
            .optional("stride", &L::stride, "stride of its first repetition", between(1, 16));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<InvertedResidualLayer> added_inverted_residual(
    "inverted_residual", "a block of MobileNetV2");

}  // namespace
}  // namespace orrery
