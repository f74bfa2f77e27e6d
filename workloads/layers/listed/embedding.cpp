// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "workloads/base/real.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A row of a table for each token, and one of another for its place.
struct EmbeddingLayer final : ListedLayer {
  EmbeddingLayer() { kind = "embedding"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{channels, in.positions(), 1};
    const std::int64_t parameters = (vocabulary + positions) * channels;
    const double tables = positions > 0 ? 2 : 1;
    const KernelClass streams = KernelClass::kEmbedding;
    // Rows are added to a table of gradients that was cleared.
    Kernel gradient = stream(graph.pass(), "embedding backward", streams, out, {1, 1, 1});
    gradient.written += Bytes(real(parameters) * kWeightGradientBytes);
    return graph.add(
        {.name = "embedding",
         .inputs = {inputs.front()},
         .result = out,
         .parameters = parameters,
         .forward = {stream(graph.pass(), "embedding", streams, out, {tables, 1, tables - 1})},
         .gradient = {std::move(gradient)}});
  }

  std::int64_t vocabulary = 0, channels = 0, positions = 0;
  static const config::Schema<EmbeddingLayer>& schema() {
    using L = EmbeddingLayer;
    using config::between;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("embedding", "a row of a table for each token")
            .required("vocabulary", &L::vocabulary, "rows of the table",
                      between(1, 10 * kMostChannels))
            .required("channels", &L::channels, "values of a row", between(1, kMostChannels))
            .optional("positions", &L::positions, "rows of a table of places; 0: none",
                      between(0, 10 * kMostChannels));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<EmbeddingLayer> added_embedding(
    "embedding", "a row of a table for each token");

}  // namespace
}  // namespace orrery
