// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A sum of two tensors; the second may have one value a channel for all positions.
class Sum final : public LayerOperator {
 public:
  Sum(Extent first, Extent second) : first_(first), second_(second) {}

  bool is_epilogue() const override { return true; }
  bool in_place() const override { return true; }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "sum", KernelClass::kElementwise, first_, {1 + share(), 1, 1})};
  }
  /// Gradients of both are those of the sum, unless they are added up over positions.
  std::vector<Kernel> backward(const PassContext& pass, bool) const override {
    if (first_ == second_) return {};
    return {stream(pass, "sum backward", KernelClass::kElementwise, first_, {1, share(), 1})};
  }

 private:
  double share() const { return real(second_.elements()) / real(first_.elements()); }
  Extent first_, second_;
};

/// x (1 + scale) + shift, or x gate, by vectors of a condition.
class Modulation final : public LayerOperator {
 public:
  Modulation(Extent input, std::int64_t vectors) : input_(input), vectors_(vectors) {}

  bool keeps_inputs() const override { return true; }
  bool is_epilogue() const override { return true; }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "modulation", KernelClass::kElementwise, input_,
                   {1 + share(), 1, real(vectors_)})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool) const override {
    return {stream(pass, "modulation backward", KernelClass::kElementwise, input_,
                   {2 + share(), 1 + share(), 3})};
  }

 private:
  double share() const { return real(vectors_) / real(input_.positions()); }
  Extent input_;
  std::int64_t vectors_;
};

struct AddLayer final : ListedLayer {
  AddLayer() { kind = "add"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    if (inputs.size() < 2)
      throw config::KeyError("from", "a sum needs two inputs or more: from: [NAME, NAME]");
    std::size_t value = inputs.front();
    for (std::size_t i = 1; i < inputs.size(); ++i)
      value = add_tensors(graph, "sum", value, inputs[i]);
    return activate(graph, "activation", value, activation);
  }

  ActivationFunction activation = ActivationFunction::kNone;
  static const config::Schema<AddLayer>& schema() {
    static const config::Schema<AddLayer> schema =
        listed_layer_schema<AddLayer>("add", "the sum of its inputs")
            .optional("activation", &AddLayer::activation, "the function behind it");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<AddLayer> added_add("add", "the sum of its inputs");

}  // namespace

std::size_t add_tensors(LayerGraphBuilder& graph, const std::string& name, std::size_t first,
                        std::size_t second) {
  const Extent one = graph.extent(first), other = graph.extent(second);
  if (one != other && other != Extent{one.channels, 1, 1})
    throw config::KeyError(
        "from", "inputs of " + to_string(one) + " and " + to_string(other) + " do not add up");
  return graph.add(name, {first, second}, one, std::make_shared<Sum>(one, other));
}

std::size_t modulate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     std::size_t vectors, std::int64_t used) {
  const Extent extent = graph.extent(input), given = graph.extent(vectors);
  if (given.elements() % extent.channels != 0)
    throw config::KeyError("from", std::to_string(given.elements()) +
                                       " values of a condition are no vectors of " +
                                       std::to_string(extent.channels) + " channels");
  return graph.add(name, {input, vectors}, extent, std::make_shared<Modulation>(extent, used));
}

}  // namespace orrery
