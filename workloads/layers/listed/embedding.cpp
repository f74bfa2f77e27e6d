// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A row of a table for each token, and one of another for its place.
class Lookup final : public LayerOperator {
 public:
  Lookup(std::int64_t vocabulary, std::int64_t positions, Extent out)
      : vocabulary_(vocabulary), positions_(positions), out_(out) {}

  std::int64_t parameters() const override { return (vocabulary_ + positions_) * out_.channels; }
  std::vector<Kernel> forward(const PassContext& pass) const override {
    const double tables = positions_ > 0 ? 2 : 1;
    return {stream(pass, "embedding", KernelClass::kEmbedding, out_, {tables, 1, tables - 1})};
  }
  /// Rows are added to a table of gradients that was cleared.
  std::vector<Kernel> backward(const PassContext& pass, bool) const override {
    Kernel kernel = stream(pass, "embedding backward", KernelClass::kEmbedding, out_, {1, 1, 1});
    kernel.written += Bytes(real(parameters()) * kWeightGradientBytes);
    return {kernel};
  }

 private:
  std::int64_t vocabulary_, positions_;
  Extent out_;
};

struct EmbeddingLayer final : ListedLayer {
  EmbeddingLayer() { kind = "embedding"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{channels, in.positions(), 1};
    return graph.add("embedding", {inputs.front()}, out,
                     std::make_shared<Lookup>(vocabulary, positions, out));
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
