// SPDX-License-Identifier: Apache-2.0
#include "sim/serving/engine_costs.h"

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

const config::Schema<EngineAllReduce>& EngineAllReduce::schema() {
  using A = EngineAllReduce;
  using config::at_least;
  static const auto schema =
      config::Schema<A>("all_reduce",
                        "kernels that add up buffers of tensor parallel ranks inside a system; "
                        "NCCL carries what is too large for all of them")
          .optional("fused", &A::fused,
                    "largest buffer of the kernel that adds the residual and norms the sum, where "
                    "kernels.allreduce_norm is on",
                    at_least(0))
          .optional("own", &A::own,
                    "the engine's one-shot and two-shot kernels (vLLM: custom_all_reduce) carry "
                    "smaller buffers than this; 0 B: it has none",
                    at_least(0))
          .optional("one_shot", &A::one_shot,
                    "one shot, in which each rank reads the buffers of all others, carries smaller "
                    "buffers than this; two shots carry the rest of `own`. 0 B: the fastest "
                    "of one shot, two shots and NCCL",
                    at_least(0))
          .optional("symmetric", &A::symmetric,
                    "kernels on PyTorch's symmetric memory carry smaller buffers than this; 0 B: "
                    "they are off",
                    at_least(0))
          .optional("multicast", &A::multicast,
                    "whether those let switches add up (multimem), otherwise they take two shots")
          .optional("barrier", &A::barrier,
                    "time that barriers add to the engine's one-shot kernel [us]", at_least(0))
          .optional("fence", &A::fence,
                    "time that fences between the shots add to the engine's two-shot kernel, for "
                    "each other rank [us]",
                    at_least(0))
          .optional("copies", &A::copies,
                    "time of the two kernels that copy into symmetric memory and out of it, "
                    "without the bytes [us]",
                    at_least(0));
  return schema;
}

}  // namespace orrery
