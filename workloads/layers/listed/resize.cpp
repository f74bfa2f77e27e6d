// SPDX-License-Identifier: Apache-2.0

#include "workloads/base/real.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

struct ResizeLayer final : ListedLayer {
  ResizeLayer() { kind = "resize"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{in.channels, in.rows * factor, in.columns * factor};
    const KernelClass streams = KernelClass::kElementwise;
    const double share = real(in.positions()) / real(out.positions());
    return graph.add(
        {.name = "resize",
         .inputs = {inputs.front()},
         .result = out,
         .forward = {stream(graph.pass(), "resize", streams, out, {share, 1, 0})},
         .gradient = {stream(graph.pass(), "resize backward", streams, out, {1, share, 1})}});
  }

  std::int64_t factor = 2;
  static const config::Schema<ResizeLayer>& schema() {
    using L = ResizeLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("resize", "each position several times over")
            .optional("factor", &L::factor, "rows and columns of the result for one",
                      config::between(1, 64));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<ResizeLayer> added_resize(
    "resize", "each position several times over");

}  // namespace
}  // namespace orrery
