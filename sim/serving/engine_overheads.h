// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// What an engine takes of the memory of a device beside weights, activations and cache.
struct EngineOverheads {
  /// Bytes of an element of the logits while next tokens are chosen: logits in 16 and in 32 bits,
  /// probabilities, random numbers, what top-k and top-p sort.
  Bytes sampled_element;
  Bytes context;        ///< CUDA context, before anything is loaded
  Bytes connected;      ///< communicators of ranks where switches reduce, before anything is loaded
  Bytes libraries;      ///< modules and workspaces outside the allocator, once the model has run
  Bytes communicators;  ///< more of ranks where switches reduce, once the model has run
  Bytes graph_pool;     ///< what captured graphs share
  Bytes graph_layer;    ///< a captured graph, for each layer
  bool graphs_in_share = false;  ///< the engine's share of the memory holds the graphs

  static const config::Schema<EngineOverheads>& schema();
};

}  // namespace orrery
