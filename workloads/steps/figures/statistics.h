// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sim/units/units.h"
#include "workloads/steps/inference/inference.h"
#include "workloads/steps/training/training.h"

namespace orrery {

/// Operators of one class: how many and what they add up to. Sends are counted, receives are not.
struct ClassStatistics {
  std::uint64_t count = 0;
  Flops matrix_flops;
  Flops vector_flops;
  Bytes bytes;  ///< kernels: HBM traffic; transfers: sum of Transfer::bytes as each rank calls it
};

/// Figures by kernel class ("gemm") and transfer class ("all_reduce tp").
struct ProgramStatistics {
  std::map<std::string, ClassStatistics> kernels;
  std::map<std::string, ClassStatistics> transfers;

  Flops matrix_flops() const;
};

/// What one real rank of a role does.
ProgramStatistics role_statistics(const Program& program, std::size_t role);
/// What all real ranks together do.
ProgramStatistics program_statistics(const Program& program);

/// FLOPs that the model needs in a step over all ranks, whatever is recomputed, copied or masked:
/// causal attention counts half of the square, the embedding lookup nothing, backward twice the
/// forward pass, once where the model is frozen. Adapters are left out.
Flops model_flops(const LlmConfig& model, const TrainingConfig& config);
/// The same for an inference step; prefill needs the head only for the last token of every
/// sequence.
Flops model_flops(const LlmConfig& model, const InferenceConfig& config);

}  // namespace orrery
