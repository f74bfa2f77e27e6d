// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// Norm, attention and MLP before their sums (Dosovitskiy et al. 2021; GPT-2). With a second input,
/// a condition, norms have no weights: a matrix makes scales, shifts and gates of it (adaLN-Zero,
/// Peebles and Xie 2023, figure 3).
struct TransformerLayer final : ListedLayer {
  TransformerLayer() { kind = "transformer"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const std::size_t input = inputs.front();
    const std::int64_t channels = graph.extent(input).channels;
    constexpr std::int64_t kVectors = 6;  // a scale, a shift and a gate for either half
    const bool conditioned = inputs.size() > 1;
    std::size_t vectors = 0;
    if (conditioned) {
      vectors = activate(graph, "condition activation", inputs[1], ActivationFunction::kSilu);
      vectors = multiply(graph, "condition", vectors, {.channels = kVectors * channels});
    }
    const auto normed = [&](const std::string& what, std::size_t value) {
      value = normalize(graph, what, value, NormMethod::kLayer, !conditioned);
      return conditioned ? modulate(graph, what + " modulation", value, vectors, 2) : value;
    };
    const auto added = [&](const std::string& what, std::size_t value, std::size_t way) {
      if (conditioned) value = modulate(graph, what + " gate", value, vectors, 1);
      return add_tensors(graph, what, value, way);
    };
    std::size_t value = normed("attention norm", input);
    value = multiply(graph, "qkv", value, {.channels = 3 * channels});
    value = attend(graph, "attention", value, {heads, causal});
    value = multiply(graph, "projection", value, {.channels = channels});
    const std::size_t middle = added("attention sum", value, input);
    value = normed("mlp norm", middle);
    value = multiply(graph, "up", value, {.channels = inner(channels)});
    value = activate(graph, "activation", value, ActivationFunction::kGelu);
    value = multiply(graph, "down", value, {.channels = channels});
    value = added("mlp sum", value, middle);
    graph.held(inputs);
    return value;
  }

  std::int64_t inner(std::int64_t channels) const {
    return intermediate > 0 ? intermediate : 4 * channels;
  }

  std::int64_t heads = 0, intermediate = 0;
  bool causal = false;
  static const config::Schema<TransformerLayer>& schema() {
    using L = TransformerLayer;
    using config::between;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("transformer",
                               "attention and MLP, each with a norm and a sum; a "
                               "second input is a condition (DiT)")
            .required("heads", &L::heads, "attention heads", between(1, kMostChannels))
            .optional("intermediate", &L::intermediate, "width of the MLP; 0: four times the width",
                      between(0, kMostChannels))
            .optional("causal", &L::causal, "tokens see those before them alone");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<TransformerLayer> added_transformer(
    "transformer", "attention and MLP, each with a norm and a sum");

}  // namespace
}  // namespace orrery
