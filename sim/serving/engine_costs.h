// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/config/schema.h"
#include "sim/units/units.h"

namespace orrery {

/// What an engine takes of the memory of a device beside weights, activations and cache. Keys that
/// an engine does not have are 0.
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
};

/// A key of EngineOverheads that engines may have.
struct OverheadKey {
  const char* key;
  Bytes EngineOverheads::*member;
  const char* help;
};
const std::vector<OverheadKey>& overhead_keys();

/// A schema of those keys that count for an engine.
template <class T>
config::Schema<T> overhead_schema(const std::vector<std::string_view>& keys) {
  config::Schema<T> schema("memory", "GPU memory for CUDA, NCCL, captured graphs and sampling");
  for (const OverheadKey& one : overhead_keys()) {
    if (std::find(keys.begin(), keys.end(), one.key) != keys.end())
      schema.optional(one.key, static_cast<Bytes T::*>(one.member), one.help, config::at_least(0));
  }
  return schema;
}

/// Which kernels of an engine add up what tensor parallel ranks of one system hold, by size of the
/// buffer, and what they take beside the system's measured one-shot kernel. What norms goes by
/// `fused`; otherwise the first of `own` and `symmetric` that is larger than the buffer carries it,
/// and the communication library where neither is.
struct EngineAllReduce {
  /// Most of FlashInfer's or TensorRT-LLM's kernel that adds the residual and norms the sum.
  Bytes fused{1.0 * 1024 * 1024};
  Bytes own{8.0 * 1024 * 1024};  ///< smaller ones: the engine's one- and two-shot kernels
  /// Smaller ones of `own`: one shot; the rest two. 0: whichever takes less, or the library.
  Bytes one_shot;
  Bytes symmetric;         ///< smaller ones: kernels on PyTorch's symmetric memory
  bool multicast = false;  ///< those let switches add up; otherwise they reduce in two shots
  Seconds barrier;         ///< a one-shot kernel of `own`: barriers of all ranks
  Seconds fence;   ///< a two-shot kernel of `own`, for each other rank: fences between the shots
  Seconds copies;  ///< two kernels: into symmetric memory and out of it

  static const config::Schema<EngineAllReduce>& schema();
};

}  // namespace orrery
