// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// One matrix for all positions.
class Dense final : public LayerOperator {
 public:
  Dense(DenseShape shape, Extent in) : shape_(shape), in_(in) {}

  std::int64_t parameters() const override {
    return (shape_.tied ? 0 : in_.channels * shape_.channels) + (shape_.bias ? shape_.channels : 0);
  }
  std::int64_t multiply_adds() const override { return in_.elements() * shape_.channels; }
  bool is_product() const override { return true; }
  bool keeps_inputs() const override { return true; }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {product(pass, "matrix", pass.rows(in_), shape_.channels, in_.channels)};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    std::vector<Kernel> kernels;
    if (to_inputs)
      kernels.push_back(
          product(pass, "matrix dgrad", pass.rows(in_), in_.channels, shape_.channels));
    Kernel weight = product(pass, "matrix wgrad", shape_.channels, in_.channels, pass.rows(in_));
    weight.written = Bytes(real(in_.channels) * real(shape_.channels) * kWeightGradientBytes);
    kernels.push_back(std::move(weight));
    if (shape_.bias)
      kernels.push_back(stream(pass, "bias gradient", KernelClass::kElementwise,
                               {shape_.channels, in_.rows, in_.columns}, {1, 0, 1}));
    return kernels;
  }

 private:
  static Kernel product(const PassContext& pass, std::string name, std::int64_t m, std::int64_t n,
                        std::int64_t k) {
    Kernel kernel = gemm(std::move(name), pass.precision, {.m = m, .n = n, .k = k});
    kernel.written = Bytes(real(m) * real(n) * pass.element());
    return kernel;
  }

  DenseShape shape_;
  Extent in_;
};

struct DenseLayer final : ListedLayer, DenseShape {
  DenseLayer() { kind = "dense"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    return activate(graph, "activation", multiply(graph, "matrix", inputs.front(), *this),
                    activation);
  }

  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<DenseLayer>& schema();
};

const config::Schema<DenseLayer>& DenseLayer::schema() {
  using L = DenseLayer;
  static const config::Schema<L> schema =
      listed_layer_schema<L>("dense", "a matrix that all positions of a sample share")
          .required("channels", static_cast<std::int64_t L::*>(&DenseShape::channels),
                    "values of its result at each position", config::between(1, kMostChannels))
          .optional("flat", static_cast<bool L::*>(&DenseShape::flat),
                    "a sample is one position, with all of its values")
          .optional("bias", static_cast<bool L::*>(&DenseShape::bias), "a bias of each channel")
          .optional(
              "tied", static_cast<bool L::*>(&DenseShape::tied),
              "whether its matrix is that of another layer, such as an embedding, and counted "
              "there")
          .optional("activation", &L::activation, "the function behind it");
  return schema;
}

const config::Registered<ListedLayer>::Add<DenseLayer> added_dense(
    "dense", "a matrix at each position, or of all");

}  // namespace

std::size_t multiply(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     const DenseShape& shape) {
  Extent in = graph.extent(input);
  if (shape.flat) in = {in.elements(), 1, 1};
  const Extent out{shape.channels, in.rows, in.columns};
  return graph.add(name, {input}, out, std::make_shared<Dense>(shape, in));
}

}  // namespace orrery
