// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_overheads.h"

namespace orrery {

const std::vector<OverheadKey>& overhead_keys() {
  using O = EngineOverheads;
  static const std::vector<OverheadKey> keys = {
      {"sampled_element", &O::sampled_element,
       "bytes of an element of the logits while next tokens are chosen, for the most sequences of "
       "an iteration; 0 B: that takes nothing"},
      {"context", &O::context, "CUDA context, before anything is loaded [GiB]"},
      {"connected", &O::connected,
       "communicators before anything is loaded, of tensor parallel ranks in a system whose "
       "switches reduce (NCCL's NVLS) [GiB]"},
      {"libraries", &O::libraries,
       "modules and workspaces outside PyTorch's allocator, once the model has run [GiB]"},
      {"communicators", &O::communicators,
       "communicators once the model has run, beyond `connected`, of tensor parallel ranks in a "
       "system whose switches reduce [GiB]"},
      {"graph_pool", &O::graph_pool, "what captured graphs share [MiB, GiB]"},
      {"graph_layer", &O::graph_layer, "a captured graph of one size, for each layer [KiB, MiB]"}};
  return keys;
}

}  // namespace orrery
