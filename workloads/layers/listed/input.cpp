// SPDX-License-Identifier: Apache-2.0

#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

struct InputLayer final : ListedLayer {
  InputLayer() { kind = "input"; }

  bool takes_earlier() const override { return false; }
  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>&, int) const override {
    return graph.input(extent);
  }

  Extent extent;
  static const config::Schema<InputLayer>& schema() {
    static const config::Schema<InputLayer> schema =
        listed_layer_schema<InputLayer>("input", "another input of a sample, such as a label")
            .optional("extent", &InputLayer::extent, "size of the input");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<InputLayer> added_input(
    "input", "another input of a sample, such as a label or a time");

}  // namespace
}  // namespace orrery
