// SPDX-License-Identifier: Apache-2.0
// Keys of engines for the GPU memory of CUDA, NCCL, captured graphs and sampling.
#pragma once

#include "sim/serving/engine_costs.h"

namespace orrery {

inline constexpr const char* kRankMemoryHelp =
    "GPU memory that each rank needs for CUDA, NCCL, captured graphs and sampling";

/// Memory of a rank of vLLM.
struct VllmMemory : EngineOverheads {
  static const config::Schema<VllmMemory>& schema() {
    static const auto schema =
        overhead_schema<VllmMemory>(
            {"sampled_element", "libraries", "communicators", "graph_pool", "graph_layer"})
            .optional("graphs_in_share",
                      static_cast<bool VllmMemory::*>(&EngineOverheads::graphs_in_share),
                      "whether the share of the memory that the engine may use has to hold its "
                      "graphs");
    return schema;
  }
};

/// Memory of a rank of SGLang.
struct SglangMemory : EngineOverheads {
  static const config::Schema<SglangMemory>& schema() {
    static const auto schema = overhead_schema<SglangMemory>({"context", "connected", "libraries"});
    return schema;
  }
};

/// Memory of a rank of TensorRT-LLM.
struct TensorrtLlmMemory : EngineOverheads {
  static const config::Schema<TensorrtLlmMemory>& schema() {
    static const auto schema = overhead_schema<TensorrtLlmMemory>(
        {"sampled_element", "context", "connected", "libraries", "communicators"});
    return schema;
  }
};

}  // namespace orrery
