// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

struct DenseLayer final : ListedLayer, DenseShape {
  DenseLayer() { kind = "dense"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    return activate(graph, "activation", multiply(graph, "matrix", inputs.front(), *this),
                    activation);
  }

  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<DenseLayer>& schema() {
    using L = DenseLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("dense", "a matrix that all positions of a sample share")
            .required("channels", static_cast<std::int64_t L::*>(&DenseShape::channels),
                      "values of its result at each position", config::between(1, kMostChannels))
            .optional("flat", static_cast<bool L::*>(&DenseShape::flat),
                      "a sample is one position, with all of its values")
            .optional("bias", static_cast<bool L::*>(&DenseShape::bias), "a bias of each channel")
            .optional("tied", static_cast<bool L::*>(&DenseShape::tied),
                      "whether its matrix is that of another layer, such as an embedding, and "
                      "counted there")
            .optional("activation", &L::activation, "the function behind it");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<DenseLayer> added_dense(
    "dense", "a matrix at each position, or of all");

}  // namespace

std::size_t multiply(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const DenseShape& shape) {
  Extent in = graph.extent(input);
  if (shape.flat) in = {in.elements(), 1, 1};
  const Extent out{shape.channels, in.rows, in.columns};
  const PassContext& pass = graph.pass();
  const GemmShape forward{.m = pass.rows(in), .n = shape.channels, .k = in.channels};
  const auto written = [](Kernel kernel, double element) {
    kernel.written = Bytes(real(kernel.m) * real(kernel.n) * element);
    return kernel;
  };
  const std::int64_t biases = shape.bias ? shape.channels : 0;
  ListedOp op{.name = name,
              .inputs = {input},
              .result = out,
              .parameters = (shape.tied ? 0 : in.channels * shape.channels) + biases,
              .multiply_adds = in.elements() * shape.channels,
              .forward = {written(gemm(name, pass.precision, forward), pass.element())},
              .keeps_inputs = true};
  if (graph.tensor(input).trained)
    op.gradient.push_back(
        written(data_gradient("matrix", pass.precision, forward), pass.element()));
  op.gradient.push_back(
      written(gemm("matrix wgrad", pass.precision, {forward.n, forward.k, forward.m}),
              kWeightGradientBytes));
  if (shape.bias)
    op.gradient.push_back(stream(pass, "bias gradient", KernelClass::kElementwise, out, {1, 0, 1}));
  return graph.add(std::move(op));
}

}  // namespace orrery
