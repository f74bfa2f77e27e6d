// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "workloads/layers/listed/listed_layer.h"

namespace orrery {

/// A file of `configs/layer_models`: a model as a list of layers, whatever they compute.
struct LayerModelConfig {
  std::string name;
  std::string source;  ///< document that published it
  Extent input;        ///< one sample
  std::vector<config::OneOf<ListedLayer>> layers;
  static const config::Schema<LayerModelConfig>& schema();

  /// @throws config::KeyError at `layers.N.KEY` for layers that do not go together
  LayerGraph build(const PassContext& pass) const;
};

}  // namespace orrery
