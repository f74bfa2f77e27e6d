// SPDX-License-Identifier: Apache-2.0

#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A copy with learned positions added, behind a class token.
struct TokensLayer final : ListedLayer {
  TokensLayer() { kind = "tokens"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{in.channels, in.positions() + (class_token ? 1 : 0), 1};
    const KernelClass streams = KernelClass::kElementwise;
    return graph.add(
        {.name = "tokens",
         .inputs = {inputs.front()},
         .result = out,
         .parameters = out.elements() + (class_token ? out.channels : 0),
         .forward = {stream(graph.pass(), "tokens", streams, out, {1, 1, 1})},
         .gradient = {stream(graph.pass(), "tokens backward", streams, out, {1, 1, 1})}});
  }

  bool class_token = false;
  static const config::Schema<TokensLayer>& schema() {
    using L = TokensLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("tokens", "positions become tokens, each with a position's values")
            .optional("class_token", &L::class_token, "a learned token before them (ViT)");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<TokensLayer> added_tokens(
    "tokens", "positions become tokens, with learned positions and a class token");

}  // namespace
}  // namespace orrery
