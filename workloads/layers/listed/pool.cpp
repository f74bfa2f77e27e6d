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

Extent pooled(const Extent& in, const PoolShape& shape) {
  if (shape.method == PoolMethod::kGlobal || shape.method == PoolMethod::kFirst)
    return {in.channels, 1, 1};
  const auto after = [&shape](std::int64_t positions) {
    if (positions + 2 * shape.padding < shape.size)
      throw config::KeyError("size", fmt::format("a window of {} is larger than an input of {}",
                                                 shape.size, positions));
    return (positions + 2 * shape.padding - shape.size) / shape.stride + 1;
  };
  return {in.channels, after(in.rows), after(in.columns)};
}

struct PoolLayer final : ListedLayer, PoolShape {
  PoolLayer() { kind = "pool"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    return pool(graph, "pool", inputs.front(), *this);
  }
  static const config::Schema<PoolLayer>& schema() {
    using L = PoolLayer;
    using config::between;
    constexpr double kMostSize = 1024;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("pool", "one position for several")
            .optional("method", static_cast<PoolMethod L::*>(&PoolShape::method),
                      "maximum or average of a window, global (the mean of all positions), or "
                      "first (that position alone: a class token)")
            .optional("size", static_cast<std::int64_t L::*>(&PoolShape::size),
                      "rows and columns of a window", between(1, kMostSize))
            .optional("stride", static_cast<std::int64_t L::*>(&PoolShape::stride),
                      "positions from one window to the next", between(1, kMostSize))
            .optional("padding", static_cast<std::int64_t L::*>(&PoolShape::padding),
                      "positions around the input", between(0, kMostSize));
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<PoolLayer> added_pool(
    "pool", "one position for several, or for all");

}  // namespace

std::size_t pool(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                 const PoolShape& shape) {
  const Extent in = graph.extent(input), out = pooled(in, shape);
  const KernelClass kind = KernelClass::kElementwise;
  // Elements that one of the result is made of, each counted once.
  const double ratio = real(in.elements()) / real(out.elements());
  // A maximum finds its way back by where it was.
  const bool maximum = shape.method == PoolMethod::kMaximum;
  const double kept = maximum ? 1 : 0;
  ListedOp op{
      .name = name,
      .inputs = {input},
      .result = out,
      .gradient = {stream(graph.pass(), "pool backward", kind, in, {kept + 1 / ratio, 1, 1})},
      .keeps_inputs = maximum};
  if (shape.method != PoolMethod::kFirst)
    op.forward = {stream(graph.pass(), name, kind, out, {ratio, 1, ratio})};
  return graph.add(std::move(op));
}

}  // namespace orrery
