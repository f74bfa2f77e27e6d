// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

double function_flops(ActivationFunction function) {
  switch (function) {
    case ActivationFunction::kNone:
      return 0;
    case ActivationFunction::kRelu:
      return 1;
    case ActivationFunction::kRelu6:
      return 2;
    case ActivationFunction::kGelu:
      return vector_cost::kGelu;
    case ActivationFunction::kSilu:
    case ActivationFunction::kSigmoid:
    case ActivationFunction::kTanh:
      return vector_cost::kSilu;
    case ActivationFunction::kSoftmax:
      return vector_cost::kSoftmax;
  }
  return 0;
}

class ElementFunction final : public LayerOperator {
 public:
  ElementFunction(ActivationFunction function, Extent extent)
      : function_(function), extent_(extent) {}

  /// The gradient of most follows from their result.
  bool keeps_inputs() const override { return !from_result(); }
  bool keeps_output() const override { return from_result(); }
  bool is_epilogue() const override { return function_ != ActivationFunction::kSoftmax; }
  bool in_place() const override { return from_result(); }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "activation", kind(), extent_, {1, 1, function_flops(function_)})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    if (!to_inputs) return {};
    return {stream(pass, "activation backward", kind(), extent_,
                   {2, 1, function_flops(function_) + 1})};
  }

 private:
  KernelClass kind() const {
    return function_ == ActivationFunction::kSoftmax ? KernelClass::kSoftmax
                                                     : KernelClass::kElementwise;
  }
  bool from_result() const {
    return function_ != ActivationFunction::kGelu && function_ != ActivationFunction::kSilu;
  }

  ActivationFunction function_;
  Extent extent_;
};

struct ActivationLayer final : ListedLayer {
  ActivationLayer() { kind = "activation"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    return activate(graph, "activation", inputs.front(), function);
  }

  ActivationFunction function = ActivationFunction::kRelu;
  static const config::Schema<ActivationLayer>& schema();
};

const config::Schema<ActivationLayer>& ActivationLayer::schema() {
  static const config::Schema<ActivationLayer> schema =
      listed_layer_schema<ActivationLayer>("activation", "a function of each value")
          .optional("function", &ActivationLayer::function,
                    "which function; softmax is over the channels of a position");
  return schema;
}

const config::Registered<ListedLayer>::Add<ActivationLayer> added_activation(
    "activation", "a function of each value");

}  // namespace

std::size_t activate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     ActivationFunction function) {
  if (function == ActivationFunction::kNone) return input;
  const Extent extent = graph.extent(input);
  return graph.add(name, {input}, extent, std::make_shared<ElementFunction>(function, extent));
}

}  // namespace orrery
