// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

/// What every runtime does to a model before it runs: batch norms go into the weights of the
/// convolution or product before them (a bias is left), what nobody reads is not computed, and
/// products read transposed operands where they stand.
void simplify(LoweredModel& model);

}  // namespace orrery::onnx
