// SPDX-License-Identifier: Apache-2.0
// Kernels of optimizers, byte by byte.
#pragma once

#include <string>
#include <vector>

#include "workloads/ops/kernels.h"
#include "workloads/software/training_software.h"
#include "workloads/steps/training/optimizer/optimizer_config.h"

namespace orrery {

/// Bytes that the optimizer keeps of a parameter, fp32 master weight included: both moments of Adam
/// (Rajbhandari et al. 2020, ZeRO, section 3.1), the momentum of Muon and of SGD.
/// Weights of 32 bits are their own.
double optimizer_bytes(OptimizerKind kind, Precision precision, const OptimizerStates& states = {});

/// A pass of the optimizer over `elements` values.
Kernel optimizer_kernel(std::string name, double elements, StreamCost per_element);

/// Bytes of a gradient that the optimizer reads, and of a weight that it reads and writes.
struct UpdateBytes {
  double gradient = 4, weight = 4;
};
UpdateBytes update_bytes(Precision precision, const TrainingSoftware& software,
                         const OptimizerStates& states);

Kernel clipping_kernel(double elements, double gradient);
Kernel adam_kernel(double elements, UpdateBytes bytes, const OptimizerStates& states);
Kernel sgd_kernel(double elements, UpdateBytes bytes, const OptimizerStates& states);
/// Weights back to 16 bits, and gradients cleared; weights of 32 bits are where they have to be.
Kernel weight_cast(double elements, Precision precision, double gradient,
                   const OptimizerStates& states);

/// Passes of Megatron-LM's mixed-precision optimizer over the gradients of `elements` parameters:
/// copied to fp32 (read 2, write 4) unless they are, under fp16 unscaled and checked (4, 4), and
/// where they are clipped read for their norm (4); empty where nothing is left.
/// Without master weights they are read as they are.
std::vector<Kernel> gradient_preparation(double elements, Precision precision,
                                         const TrainingSoftware& software, bool clipping,
                                         const OptimizerStates& states = {});

/// All passes of mixed-precision Adam: preparation, clipping (4, 4), Adam (gradient, master weight
/// and two moments: read 16, write 12), the weight cast back (4, 2) and the gradient cleared (write
/// its bytes).
std::vector<Kernel> optimizer_kernels(double elements, Precision precision,
                                      const TrainingSoftware& software);

}  // namespace orrery
