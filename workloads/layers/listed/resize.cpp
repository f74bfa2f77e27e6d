// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// Each position several times over.
class Repetition final : public LayerOperator {
 public:
  Repetition(Extent in, Extent out) : in_(in), out_(out) {}
  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "resize", KernelClass::kElementwise, out_, {1 / times(), 1, 0})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    if (!to_inputs) return {};
    return {stream(pass, "resize backward", KernelClass::kElementwise, out_, {1, 1 / times(), 1})};
  }

 private:
  double times() const { return real(out_.positions()) / real(in_.positions()); }
  Extent in_, out_;
};

struct ResizeLayer final : ListedLayer {
  ResizeLayer() { kind = "resize"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    const Extent in = graph.extent(inputs.front());
    const Extent out{in.channels, in.rows * factor, in.columns * factor};
    return graph.add("resize", {inputs.front()}, out, std::make_shared<Repetition>(in, out));
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
