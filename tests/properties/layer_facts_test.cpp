// SPDX-License-Identifier: Apache-2.0
// Every key of every kind of layer moves some result.
#include <string>
#include <vector>

#include "tests/properties/schema_facts.h"
#include "workloads/layers/listed/listed_layer.h"

namespace orrery::facts::layer_facts_test {
namespace {

std::string trained(const std::string& model) {
  return "{experiment: layers, system: dgx_a100, phase: training, batch: 4, layer_model: " + model +
         "}";
}

/// A list over an input of 16 channels at 32 x 32.
std::string list(const std::string& layers) {
  return trained("{input: {channels: 16, rows: 32, columns: 32}, layers: [" + layers + "]}");
}

std::string set(const std::string& key) { return "layer_model.layers." + key; }

/// A key of the first layer of a list.
Change change(const std::string& kind, const std::string& keys, const std::string& key,
              const std::string& value) {
  return {"layer_model.layers." + kind + "." + key,
          list("{kind: " + kind + ", " + keys + "}, {kind: dense, channels: 8}"),
          {set("0." + key + "=" + value)}};
}

std::vector<Change> layer_changes() {
  const std::string block = "channels: 16";
  std::vector<Change> changes = {
      {"layer_model.layers.kind",
       list("{kind: norm}, {kind: dense, channels: 8}"),
       {set("0={kind: activation}")}},
      {"layer_model.layers.dense.flat", list("{kind: dense, channels: 8}"), {set("0.flat=true")}},
      {"layer_model.layers.dense.tied", list("{kind: dense, channels: 8}"), {set("0.tied=true")}},
      {"layer_model.layers.input.extent.channels",
       list("{kind: input, extent: {channels: 4}}, {kind: dense, channels: 8}"),
       {set("0.extent.channels=8")}},
      {"layer_model.layers.input.extent.rows",
       list("{kind: input, extent: {channels: 4}}, {kind: dense, channels: 8}"),
       {set("0.extent.rows=8")}},
      {"layer_model.layers.input.extent.columns",
       list("{kind: input, extent: {channels: 4}}, {kind: dense, channels: 8}"),
       {set("0.extent.columns=8")}},
      change("convolution", block, "groups", "4"),
      change("convolution", block, "fan_in", "8"),
      change("convolution", block, "padding", "3"),
      change("convolution", block, "stride", "2"),
      change("convolution", block, "size", "3"),
      change("convolution", block, "bias", "unit"),
      change("convolution", block, "norm", "batch"),
      change("convolution", block, "activation", "relu"),
      change("norm", "method: batch", "method", "local"),
      change("norm", "method: batch", "weights", "false"),
      change("norm", "method: batch", "activation", "gelu"),
      change("activation", "function: relu", "function", "gelu"),
      change("pool", "method: maximum", "method", "global"),
      change("pool", "method: maximum", "size", "4"),
      change("pool", "method: maximum", "stride", "4"),
      change("pool", "method: maximum", "padding", "1"),
      change("resize", "factor: 2", "factor", "4"),
      change("tokens", "class_token: false", "class_token", "true"),
      change("attention", "heads: 2", "heads", "4"),
      change("attention", "heads: 2", "norm", "none"),
      change("transformer", "heads: 2", "heads", "4"),
      change("transformer", "heads: 2", "causal", "true"),
      change("transformer", "heads: 2", "intermediate", "128"),
      change("bottleneck", block, "channels", "32"),
      change("bottleneck", block, "stride", "2"),
      change("inverted_residual", block, "channels", "32"),
      change("inverted_residual", block, "stride", "2"),
      change("inverted_residual", block, "expansion", "2"),
      change("residual_block", block, "channels", "32"),
      change("dense", block, "channels", "32"),
      change("dense", block, "bias", "false"),
      change("dense", block, "activation", "tanh"),
      change("convolution", block, "channels", "32"),
      change("embedding", "vocabulary: 100, channels: 16", "vocabulary", "200"),
      change("embedding", "vocabulary: 100, channels: 16", "channels", "32"),
      change("embedding", "vocabulary: 100, channels: 16", "positions", "2000"),
      {"layer_model.layers.add.activation",
       list("{kind: norm, name: a}, {kind: add, from: [a, input]}, {kind: dense, channels: 8}"),
       {set("1.activation=gelu")}},
  };
  // What any layer may say.
  for (const auto& [kind, info] : config::Registered<ListedLayer>::items()) {
    std::string keys;
    for (const config::Field& field : info.record().fields())
      if (field.required && field.key != "kind") keys += ", " + std::string(field.key) + ": 16";
    const std::string before =
        "{kind: dense, name: a, channels: 16}, {kind: dense, name: b, channels: 32}, ";
    // An input takes nothing, and is there once: it refuses both.
    const std::string from = kind == "input" ? ""
                             : kind == "add" ? ", from: [a, a]"
                                             : ", from: [a]";
    const std::string layer = "{kind: " + kind + keys + from + "}";
    const std::string after = ", {kind: dense, channels: 8}";
    changes.push_back({"layer_model.layers." + kind + ".from",
                       list(before + layer + after),
                       {set(kind == "add" ? "2.from=[b, b]" : "2.from=[b]")}});
    changes.push_back({"layer_model.layers." + kind + ".repeat",
                       list(before + layer + after),
                       {set("2.repeat=2")}});
  }
  return changes;
}

TEST(Facts, OfListsOfLayersMoveResults) {
  const std::vector<Probe> probes = {{{"layer_model.input"}, trained("resnet_50")}};
  expect_that_all_move("layer_model.", probes, layer_changes());
}

}  // namespace
}  // namespace orrery::facts::layer_facts_test
