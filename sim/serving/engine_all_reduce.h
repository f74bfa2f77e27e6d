// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/declared.h"
#include "sim/units/units.h"

namespace orrery {

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
