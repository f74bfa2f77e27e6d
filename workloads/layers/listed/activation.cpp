// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

double function_flops(ActivationFunction function) {
  static const std::map<ActivationFunction, double> kFlops = {
      {ActivationFunction::kNone, 0},
      {ActivationFunction::kRelu, 1},
      {ActivationFunction::kRelu6, 2},
      {ActivationFunction::kGelu, vector_cost::kGelu},
      {ActivationFunction::kSilu, vector_cost::kSilu},
      {ActivationFunction::kSigmoid, vector_cost::kSilu},
      {ActivationFunction::kTanh, vector_cost::kSilu},
      {ActivationFunction::kSoftmax, vector_cost::kSoftmax},
  };
  return kFlops.at(function);
}

struct ActivationLayer final : ListedLayer {
  ActivationLayer() { kind = "activation"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    return activate(graph, "activation", inputs.front(), function);
  }

  ActivationFunction function = ActivationFunction::kRelu;
  static const config::Schema<ActivationLayer>& schema() {
    static const config::Schema<ActivationLayer> schema =
        listed_layer_schema<ActivationLayer>("activation", "a function of each value")
            .optional("function", &ActivationLayer::function,
                      "which function; softmax is over the channels of a position");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ActivationLayer> added_activation(
    "activation", "a function of each value");

}  // namespace

std::size_t activate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     ActivationFunction function) {
  if (function == ActivationFunction::kNone) return input;
  const Extent extent = graph.extent(input);
  const bool softmax = function == ActivationFunction::kSoftmax;
  const KernelClass kind = softmax ? KernelClass::kSoftmax : KernelClass::kElementwise;
  // The gradient of most follows from their result.
  const bool of_input =
      function == ActivationFunction::kGelu || function == ActivationFunction::kSilu;
  const double flops = function_flops(function);
  return graph.add(
      {.name = name,
       .inputs = {input},
       .result = extent,
       .forward = {stream(graph.pass(), name, kind, extent, {1, 1, flops})},
       .gradient = {stream(graph.pass(), "activation backward", kind, extent, {2, 1, flops + 1})},
       .keeps_inputs = of_input,
       .keeps_result = !of_input,
       .epilogue = !softmax});
}

}  // namespace orrery
