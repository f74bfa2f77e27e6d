// SPDX-License-Identifier: Apache-2.0
#include "workloads/layers/listed/layer_model.h"

#include <fmt/core.h>

#include <cstddef>
#include <map>

#include "sim/config/diagnostics.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// Results of layers by the names that their lists give them.
using NamedTensors = std::map<std::string, std::size_t>;

std::size_t named_tensor(const NamedTensors& made, const std::string& name) {
  const auto found = made.find(name);
  if (found != made.end()) return found->second;
  std::vector<std::string> names;
  names.reserve(made.size());
  for (const auto& [other, tensor] : made) names.push_back(other);
  throw config::KeyError("from", "no layer before it has the name '" + name + "'",
                         {nearest_name(name, names), {}});
}

/// What a repetition of a layer takes: the first time what the list says, then what the one before
/// made, and the rest of what the list says.
std::vector<std::size_t> inputs_of(const ListedLayer& layer, int time, std::size_t last,
                                   const NamedTensors& made) {
  std::vector<std::size_t> inputs;
  if (!layer.takes_earlier()) {
    if (!layer.from.empty()) throw config::KeyError("from", "an input takes nothing");
    if (layer.repeat > 1) throw config::KeyError("repeat", "an input is there once");
    return inputs;
  }
  inputs.reserve(layer.from.size());
  for (const std::string& name : layer.from) inputs.push_back(named_tensor(made, name));
  if (inputs.empty()) inputs.push_back(last);
  if (time > 0) inputs.front() = last;
  return inputs;
}

std::string layer_name(const ListedLayer& layer, std::size_t place, int time) {
  std::string name = layer.name;
  if (name.empty()) name = fmt::format("{} {}", layer.kind, place);
  if (layer.repeat > 1) name += "." + std::to_string(time);
  return name;
}

}  // namespace

const config::Schema<LayerModelConfig>& LayerModelConfig::schema() {
  using M = LayerModelConfig;
  static const config::Schema<M> schema =
      config::Schema<M>("layer_model", "a model as a list of layers")
          .named("layer_model", &M::name)
          .optional("source", &M::source, "where it was published")
          .required("input", &M::input, "one sample; the name `input` in `from`")
          .required("layers", &M::layers, "layers in the order in which they run")
          .check(
              "a model has layers", [](const M& m) { return !m.layers.empty(); }, "layers");
  return schema;
}

LayerGraph LayerModelConfig::build(const PassContext& pass) const {
  LayerGraphBuilder graph(pass);
  std::size_t last = graph.input(input);
  NamedTensors made = {{"input", last}};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const ListedLayer& layer = *layers[i].object;
    try {
      for (int time = 0; time < layer.repeat; ++time) {
        graph.set_layer(layer_name(layer, i, time));
        last = layer.build(graph, inputs_of(layer, time, last, made), time);
      }
    } catch (const config::KeyError& error) {
      throw config::KeyError(fmt::format("layers.{}.{}", i, error.paths().front()), error.message(),
                             error.advice());
    }
    if (!layer.name.empty()) made[layer.name] = last;
  }
  return graph.finish();
}

}  // namespace orrery
