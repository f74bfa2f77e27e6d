// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>
#include <utility>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

struct AddLayer final : ListedLayer {
  AddLayer() { kind = "add"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
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
  const KernelClass kind = KernelClass::kElementwise;
  const double share = real(other.elements()) / real(one.elements());
  ListedOp op{.name = name,
              .inputs = {first, second},
              .result = one,
              .forward = {stream(graph.pass(), name, kind, one, {1 + share, 1, 1})},
              .epilogue = true};
  // Gradients of both are those of the sum, unless they are added up over positions.
  if (one != other) op.gradient = {stream(graph.pass(), "sum backward", kind, one, {1, share, 1})};
  return graph.add(std::move(op));
}

std::size_t modulate(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                     std::size_t vectors, std::int64_t used) {
  const Extent extent = graph.extent(input), given = graph.extent(vectors);
  if (given.elements() % extent.channels != 0)
    throw config::KeyError("from",
                           fmt::format("{} values of a condition are no vectors of {} channels",
                                       given.elements(), extent.channels));
  const KernelClass kind = KernelClass::kElementwise;
  const double share = real(used) / real(extent.positions());
  return graph.add(
      {.name = name,
       .inputs = {input, vectors},
       .result = extent,
       .forward = {stream(graph.pass(), name, kind, extent, {1 + share, 1, real(used)})},
       .gradient = {stream(graph.pass(), "modulation backward", kind, extent,
                           {2 + share, 1 + share, 3})},
       .keeps_inputs = true,
       .epilogue = true});
}

}  // namespace orrery
