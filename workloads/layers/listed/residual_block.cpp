// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// The block of the diffusion U-Net of Ho et al. 2020, appendix B: group norm, SiLU and a 3x3
/// convolution, twice, with a projection of the time embedding, its second input, added between.
struct ResidualBlockLayer final : ListedLayer {
  ResidualBlockLayer() { kind = "residual_block"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const std::size_t input = inputs.front();
    const auto half = [&](const std::string& what, std::size_t value) {
      value = normalize(graph, what + " norm", value, NormMethod::kGroup);
      value = activate(graph, what + " activation", value, ActivationFunction::kSilu);
      return convolve(graph, what, value,
                      {.channels = channels, .size = 3, .bias = ConvolutionBias::kChannel});
    };
    std::size_t value = half("first", input);
    if (inputs.size() > 1) {
      std::size_t time = activate(graph, "time activation", inputs[1], ActivationFunction::kSilu);
      time = multiply(graph, "time", time, {.channels = channels});
      value = add_tensors(graph, "time sum", value, time);
    }
    value = half("second", value);
    std::size_t way = input;
    if (graph.extent(input).channels != channels)
      way = convolve(graph, "project", input,
                     {.channels = channels, .bias = ConvolutionBias::kChannel});
    value = add_tensors(graph, "sum", value, way);
    graph.held(inputs);
    return value;
  }

  std::int64_t channels = 0;
  static const config::Schema<ResidualBlockLayer>& schema() {
    using L = ResidualBlockLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("residual_block",
                               "a block of a diffusion U-Net; a second input is "
                               "the embedding of the time")
            .required("channels", &L::channels, "channels of its result",
                      config::between(1, kMostChannels));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ResidualBlockLayer> added_residual_block(
    "residual_block", "a block of a diffusion U-Net");

}  // namespace
}  // namespace orrery
