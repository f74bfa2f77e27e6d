// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "sim/config/diagnostics.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery {
namespace {

/// A copy of its inputs, and of its gradient to theirs.
class Concatenation final : public LayerOperator {
 public:
  explicit Concatenation(Extent out) : out_(out) {}
  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {stream(pass, "concatenation", KernelClass::kElementwise, out_, {1, 1, 0})};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool to_inputs) const override {
    if (!to_inputs) return {};
    return {stream(pass, "concatenation backward", KernelClass::kElementwise, out_, {1, 1, 0})};
  }

 private:
  Extent out_;
};

struct ConcatLayer final : ListedLayer {
  ConcatLayer() { kind = "concat"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    Extent out = graph.extent(inputs.front());
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      const Extent& other = graph.extent(inputs[i]);
      if (other.rows != out.rows || other.columns != out.columns)
        throw config::KeyError("from", "inputs of " + to_string(graph.extent(inputs.front())) +
                                           " and " + to_string(other) +
                                           " have no channels side by side");
      out.channels += other.channels;
    }
    return graph.add("concatenation", inputs, out, std::make_shared<Concatenation>(out));
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
