// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_overheads.h"

namespace orrery {

const config::Schema<EngineOverheads>& EngineOverheads::schema() {
  using O = EngineOverheads;
  static const auto schema =
      config::Schema<O>("memory", "what a rank takes beside weights, activations and cache")
          .optional("sampled_element", &O::sampled_element,
                    "bytes of an element of the logits while next tokens are chosen, for the most "
                    "sequences of an iteration; 0 B: the largest iteration chooses one",
                    config::between(Bytes(0), Bytes(1000)))
          .optional("context", &O::context, "CUDA context, before anything is loaded [GiB]",
                    config::at_least(0))
          .optional("connected", &O::connected,
                    "communicators before anything is loaded, of several ranks in a system whose "
                    "switches reduce (NCCL's NVLS) [GiB]",
                    config::at_least(0))
          .optional("libraries", &O::libraries,
                    "modules and workspaces outside PyTorch's allocator, once the model has run "
                    "[GiB]",
                    config::at_least(0))
          .optional("communicators", &O::communicators,
                    "communicators once the model has run, beyond `connected`, of several ranks in "
                    "a system whose switches reduce [GiB]",
                    config::at_least(0))
          .optional("graph_pool", &O::graph_pool, "what captured graphs share [MiB, GiB]",
                    config::at_least(0))
          .optional("graph_layer", &O::graph_layer,
                    "a captured graph of one size, for each layer [KiB, MiB]", config::at_least(0))
          .optional("graphs_in_share", &O::graphs_in_share,
                    "whether the share of the memory that the engine may use has to hold its "
                    "graphs");
  return schema;
}

}  // namespace orrery
