// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/layers/parts/attention_kernels.h"
#include "workloads/ops/kernels.h"

namespace orrery {
namespace {

/// FlashAttention over the positions of a sample.
class Attention final : public LayerOperator {
 public:
  Attention(AttentionSizes sizes, Extent in, Extent out) : sizes_(sizes), in_(in), out_(out) {}

  bool keeps_inputs() const override { return true; }
  bool keeps_output() const override { return true; }
  std::int64_t multiply_adds() const override {
    const double pairs = core_size(core({})).pairs;
    return static_cast<std::int64_t>(2 * pairs * real(head_width()));
  }

  std::vector<Kernel> forward(const PassContext& pass) const override {
    return {flash_attention("attention", core(pass))};
  }
  std::vector<Kernel> backward(const PassContext& pass, bool) const override {
    const AttentionCore all = core(pass);
    const CoreSize size = core_size(all);
    Kernel kernel = flash_attention("attention backward", all);
    kernel.attention.backward = true;
    // Scores again, and the gradients of values, probabilities, queries and keys: five products.
    kernel.matrix_flops = Flops(2 * size.pairs * real(5 * head_width()));
    kernel.vector_flops = Flops(2 * size.pairs * vector_cost::kSoftmax);
    kernel.read = size.query + size.keys + size.values + 2 * size.output;
    kernel.written = size.query + size.keys + size.values;
    return {kernel};
  }

 private:
  std::int64_t head_width() const { return out_.channels / sizes_.heads; }
  AttentionCore core(const PassContext& pass) const {
    AttentionCore core;
    core.precision = pass.precision;
    core.sequences = pass.samples;
    core.heads = core.kv_heads = sizes_.heads;
    core.query = core.context = in_.positions();
    core.causal = sizes_.causal;
    core.qk_dim = core.v_dim = head_width();
    core.new_bytes = core.cache_bytes = pass.element();
    return core;
  }

  AttentionSizes sizes_;
  Extent in_, out_;
};

/// Attention of a convolutional model: a norm, projections, and a sum with what came in.
struct AttentionLayer final : ListedLayer {
  AttentionLayer() { kind = "attention"; }

  std::size_t build(LayerGraphBuilder& graph, const std::vector<std::size_t>& inputs,
                    int) const override {
    const std::size_t input = inputs.front();
    const std::int64_t channels = graph.extent(input).channels;
    graph.begin_call({input});
    std::size_t value = normalize(graph, "norm", input, norm);
    value = multiply(graph, "qkv", value, {.channels = 3 * channels});
    value = attend(graph, "attention", value, {heads, false});
    value = multiply(graph, "projection", value, {.channels = channels});
    value = add_tensors(graph, "sum", value, input);
    graph.end_call();
    return value;
  }

  std::int64_t heads = 1;
  NormMethod norm = NormMethod::kGroup;
  static const config::Schema<AttentionLayer>& schema() {
    using L = AttentionLayer;
    static const config::Schema<L> schema =
        listed_layer_schema<L>("attention", "a norm, attention over all positions, and a sum")
            .optional("heads", &L::heads, "heads that the channels are dealt out to",
                      config::between(1, kMostChannels))
            .optional("norm", &L::norm, "what normalises its input");
    return schema;
  }
};

const config::Registered<ListedLayer>::Add<AttentionLayer> added_attention(
    "attention", "attention over all positions, with projections and a sum");

}  // namespace

std::size_t attend(LayerGraphBuilder& graph, const std::string& name, std::size_t input,
                   AttentionSizes sizes) {
  const Extent in = graph.extent(input);
  const Extent out{in.channels / 3, in.rows, in.columns};
  if (out.channels % sizes.heads != 0)
    throw config::KeyError("heads", std::to_string(sizes.heads) + " heads do not divide " +
                                        std::to_string(out.channels) + " channels");
  return graph.add(name, {input}, out, std::make_shared<Attention>(sizes, in, out));
}

}  // namespace orrery
