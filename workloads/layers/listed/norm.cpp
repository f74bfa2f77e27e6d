// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// FLOPs of an element.
double norm_flops(NormMethod method) {
  // A square, the sum over five channels, a power and a quotient (Krizhevsky et al. 2012, 3.3).
  constexpr double kLocalCost = 8;
  if (method == NormMethod::kLocal) return kLocalCost;
  return method == NormMethod::kRms ? vector_cost::kRmsNorm : vector_cost::kLayerNorm;
}

struct NormLayer final : ListedLayer {
  NormLayer() { kind = "norm"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const bool conditioned = inputs.size() > 1;
    std::size_t value = normalize(graph, "norm", inputs.front(), method, weights && !conditioned);
    if (conditioned) {
      const std::int64_t channels = graph.extent(value).channels;
      std::size_t vectors =
          activate(graph, "condition activation", inputs[1], ActivationFunction::kSilu);
      vectors = multiply(graph, "condition", vectors, {.channels = 2 * channels});
      value = modulate(graph, "modulation", value, vectors, 2);
    }
    return activate(graph, "activation", value, activation);
  }

  NormMethod method = NormMethod::kBatch;
  bool weights = true;
  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<NormLayer>& schema() {
    using L = NormLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("norm",
                               "a normalisation; a second input is a condition that its scale and "
                               "shift are made of (DiT)")
            .optional("method", &L::method,
                      "values that are normed together: batch (a channel of all samples), layer "
                      "and rms (a position), group (channels of a sample), local (neighbouring "
                      "channels, as in AlexNet)")
            .optional("weights", &L::weights, "a scale and a shift of each channel")
            .optional("activation", &L::activation, "the function behind it");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<NormLayer> added_norm(
    "norm", "a normalisation: batch, layer, group, ...");

}  // namespace

std::size_t normalize(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                      NormMethod method, bool weights) {
  if (method == NormMethod::kNone) return input;
  const Extent extent = graph.extent(input);
  const bool batch = method == NormMethod::kBatch;
  const bool constants = batch && !graph.pass().training;
  const std::int64_t vectors = method == NormMethod::kRms ? 1 : 2;
  // A batch norm reads what it norms twice while it trains: for the statistics, and to norm.
  const double passes = batch ? 2 : 1;
  const KernelClass kind = KernelClass::kNormalization;
  return graph.add(
      {.name = name,
       .inputs = {input},
       .result = extent,
       .parameters = weights && method != NormMethod::kLocal ? vectors * extent.channels : 0,
       .forward = {stream(graph.pass(), name, kind, extent,
                          {constants ? 1 : passes, 1, constants ? 2 : norm_flops(method)})},
       .gradient = {stream(graph.pass(), "norm backward", kind, extent,
                           {2 * passes, 1, vector_cost::kNormBackward})},
       .keeps_inputs = true,
       .epilogue = batch});
}

}  // namespace orrery
