// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/graph/kernel.h"
#include "workloads/software/training_software.h"

namespace orrery {

/// Values in 16 bits of which training makes operands of narrow products: one copy whose rows the
/// product of outputs or of data gradients reads, one of columns for weight gradients.
struct NarrowOperand {
  std::string name;
  std::int64_t rows = 0, width = 0;
  Precision precision = Precision::kFp8;  ///< format in which products read it
  double wide = 2;                        ///< bytes of a value that is cast
  /// Weights of the matrix that the operand is multiplied with; 0: their scales are in order.
  double weights = 0;
  bool made = false;  ///< a norm has written the first copy
};

/// The pass over an operand that finds its largest value; none where scales are of blocks alone or
/// of earlier steps. NVFP4 has a scale of the tensor above those of blocks (Transformer Engine,
/// csrc/quantizer.cpp: NVFP4Quantizer finds the largest value first).
std::optional<Kernel> largest_value(const TrainingSoftware& software, const NarrowOperand& operand);

/// The kernels that write both copies, and those that put scales of blocks into the order in which
/// products read them.
std::vector<Kernel> narrow_casts(const TrainingSoftware& software, const NarrowOperand& operand);

/// Whether a kernel of that name makes an operand of narrow products: finds its largest value,
/// casts or transposes it, or orders its scales.
bool is_narrow_cast(std::string_view kernel);

/// The kernels behind a gather of the copy that weight gradients read. NVFP4's lies transposed, so
/// that shares of ranks come one below the other and not side by side: its values and its scales
/// are each moved once (Transformer Engine, 2025, pytorch/distributed.py:
/// _post_process_nvfp4_gather by swap_first_dims). None in other formats.
std::vector<Kernel> gathered_order(const NarrowOperand& operand);

}  // namespace orrery
