// SPDX-License-Identifier: Apache-2.0

#include "sim/config/diagnostics.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

struct ConcatLayer final : ListedLayer {
  ConcatLayer() { kind = "concat"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    Extent out = graph.extent(inputs.front());
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Extent& other = graph.extent(inputs[i]);
      if (other.rows != out.rows || other.columns != out.columns)
        throw config::KeyError("from", "inputs of " + to_string(graph.extent(inputs.front())) +
                                           " and " + to_string(other) +
                                           " have no channels side by side");
      out.channels += other.channels;
    }
    // A copy of its inputs, and of its gradient to theirs.
    const ElementCost copy{1, 1, 0};
    const KernelClass streams = KernelClass::kElementwise;
    return graph.add(
        {.name = "concatenation",
         .inputs = inputs,
         .result = out,
         .forward = {stream(graph.pass(), "concatenation", streams, out, copy)},
         .gradient = {stream(graph.pass(), "concatenation backward", streams, out, copy)}});
  }
  static const config::Schema<ConcatLayer>& schema() {
    static const config::Schema<ConcatLayer> schema =
        listed_layer_schema<ConcatLayer>("concat", "channels of its inputs side by side");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ConcatLayer> added_concat(
    "concat", "channels of its inputs side by side");

}  // namespace
}  // namespace orrery
