// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/config/byte_source.h"
#include "workloads/formats/onnx/model.h"

namespace orrery::onnx {

/// Reads a ModelProto while it streams by: what weights hold is passed over, so that memory grows
/// with the operators alone. Fields that are unknown are skipped.
/// @throws config::ConfigError with the file and the offset
Model read_model(ByteSource& source);

}  // namespace orrery::onnx
