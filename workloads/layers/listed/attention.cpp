// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <string>

#include "sim/config/diagnostics.h"
#include "workloads/base/real.h"
#include "workloads/layers/listed/layer_operators.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/layers/parts/attention_kernels.h"

namespace orrery {
namespace {

/// Attention of a convolutional model: a norm, projections, and a sum with what came in.
struct AttentionLayer final : ListedLayer {
  AttentionLayer() { kind = "attention"; }

  std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs, int) const override {
    const std::size_t input = inputs.front();
    const std::int64_t channels = graph.extent(input).channels;
    std::size_t value = normalize(graph, "norm", input, norm);
    value = multiply(graph, "qkv", value, {.channels = 3 * channels});
    value = attend(graph, "attention", value, {heads, false});
    value = multiply(graph, "projection", value, {.channels = channels});
    value = add_tensors(graph, "sum", value, input);
    graph.held({input});
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
    throw config::KeyError(
        "heads", fmt::format("{} heads do not divide {} channels", sizes.heads, out.channels));
  // FlashAttention over the positions of a sample.
  AttentionCore core;
  core.precision = graph.pass().precision;
  core.heads = core.kv_heads = sizes.heads;
  core.query = core.context = in.positions();
  core.causal = sizes.causal;
  core.qk_dim = core.v_dim = out.channels / sizes.heads;
  core.new_bytes = core.cache_bytes = graph.pass().element();
  const double products = 2 * core_size(core).pairs * real(core.qk_dim);
  core.sequences = graph.pass().samples;
  return graph.add({.name = name,
                    .inputs = {input},
                    .result = out,
                    .multiply_adds = static_cast<std::int64_t>(products),
                    .forward = {flash_attention(name, core)},
                    .gradient = {flash_attention_gradient("attention backward", core)},
                    .keeps_inputs = true,
                    .keeps_result = true});
}

}  // namespace orrery
