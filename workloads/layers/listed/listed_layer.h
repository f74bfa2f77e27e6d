// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/config/registered.h"
#include "sim/config/schema.h"
#include "workloads/layers/listed/layer_graph.h"

namespace orrery {

/// One layer of a list, as a file of a model writes it: keys, and the operations that they stand
/// for. A kind is a file with `const config::Registered<ListedLayer>::Add<Pool>` and a schema begun
/// by listed_layer_schema().
struct ListedLayer {
  virtual ~ListedLayer() = default;

  /// Adds its operations. @param inputs at least one
  /// @param time how often it has been repeated before
  /// @return its result
  /// @throws config::KeyError with a key of the layer ("groups") for what does not go together
  virtual std::size_t build(LayerGraphBuilder& graph, const LayerInputs& inputs,
                            int time) const = 0;
  /// Whether its first input is what an earlier layer made.
  virtual bool takes_earlier() const { return true; }

  std::string kind;               ///< "convolution": the name that it is registered by
  std::string name;               ///< what other layers call its result
  std::vector<std::string> from;  ///< names of its inputs; none: what the layer before made
  int repeat = 1;

  /// For config::OneOf: the kinds by the key `kind`.
  static const config::Choices& choices() {
    return config::Registered<ListedLayer>::choices("kind", "");
  }
  static const ListedLayer* view(const std::string& kind, void* object) {
    return config::Registered<ListedLayer>::view(kind, object);
  }

 protected:
  ListedLayer() = default;
};

template <class T>
config::Schema<T> listed_layer_schema(const std::string& kind, const std::string& help) {
  using L = ListedLayer;
  config::Schema<T> schema(kind, help);
  schema.required("kind", static_cast<std::string T::*>(&L::kind), "which kind of layer")
      .optional("name", static_cast<std::string T::*>(&L::name),
                "what other layers call its result in their `from`")
      .optional("from", static_cast<std::vector<std::string> T::*>(&L::from),
                "names of the layers whose results it takes; none: the one before")
      .optional("repeat", static_cast<int T::*>(&L::repeat),
                "layers of this kind, one behind the other", config::between(1, 1000));
  return schema;
}

/// Most channels, units and entries of layers, within which counts are exact.
inline constexpr double kMostChannels = 1e6;

}  // namespace orrery
