// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

class Pool final : public LayerOperator {
 public:
  Pool(PoolMethod method, Extent in, Extent out) : method_(method), in_(in), out_(out) {}

  /// A maximum finds its way back by where it was.
  bool keeps_inputs() const override { return method_ == PoolMethod::kMaximum; }
  bool is_view() const override { return method_ == PoolMethod::kFirst; }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    if (is_view()) return {};
    return {stream(pass, "pool", KernelClass::kElementwise, out_, {ratio(), 1, ratio()})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    if (!to_inputs) return {};
    const double kept = keeps_inputs() ? 1 : 0;
    return {
        stream(pass, "pool backward", KernelClass::kElementwise, in_, {kept + 1 / ratio(), 1, 1})};
  }

 private:
  /// Elements that one of the result is made of, each counted once.
  double ratio() const { return real(in_.elements()) / real(out_.elements()); }

  PoolMethod method_;
  Extent in_, out_;
};

Extent pooled(const Extent& in, const PoolShape& shape) {
  if (shape.method == PoolMethod::kGlobal || shape.method == PoolMethod::kFirst)
    return {in.channels, 1, 1};
  const auto after = [&shape](std::int64_t positions) {
    if (positions + 2 * shape.padding < shape.size)
      throw config::KeyError("size", "a window of " + std::to_string(shape.size) +
                                         " is larger than an input of " +
                                         std::to_string(positions));
    return (positions + 2 * shape.padding - shape.size) / shape.stride + 1;
  };
  return {in.channels, after(in.rows), after(in.columns)};
}

struct PoolLayer final : ListedLayer, PoolShape {
  PoolLayer() { kind = "pool"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    return pool(graph, "pool", inputs.front(), *this);
  }
  static const config::Schema<PoolLayer>& schema();
};

const config::Schema<PoolLayer>& PoolLayer::schema() {
  using L = PoolLayer;
  using config::between;
  constexpr double kMostSize = 1024;
  static const config::Schema<L> schema =
      listed_layer_schema<L>("pool", "one position for several")
          .optional("method", static_cast<PoolMethod L::*>(&PoolShape::method),
                    "maximum or average of a window, global (the mean of all positions), or first "
                    "(that position alone: a class token)")
          .optional("size", static_cast<std::int64_t L::*>(&PoolShape::size),
                    "rows and columns of a window", between(1, kMostSize))
          .optional("stride", static_cast<std::int64_t L::*>(&PoolShape::stride),
                    "positions from one window to the next", between(1, kMostSize))
          .optional("padding", static_cast<std::int64_t L::*>(&PoolShape::padding),
                    "positions around the input", between(0, kMostSize));
  return schema;
}

const config::Registered<ListedLayer>::Add<PoolLayer> added_pool(
    "pool", "one position for several, or for all");

}  // namespace

std::size_t pool(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                 const PoolShape& shape) {
  const Extent in = graph.extent(input), out = pooled(in, shape);
  return graph.add(name, {input}, out, std::make_shared<Pool>(shape.method, in, out));
}

}  // namespace orrery
