// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

struct LoweringOptions {
  std::string file;                                ///< name of the file, for messages
  std::map<std::string, std::int64_t> dimensions;  ///< sizes of symbolic dimensions
  NumberFormat format;
};

/// Goes through a model as it runs: shapes of all tensors, kernels of all operators. Branches of If
/// are chosen where the condition follows from shapes, else the first is taken; loops run as often
/// as they say, once where only a run can tell; results whose size depends on values are as large
/// as they can be.
/// @throws config::ConfigError with the file and the operator
LoweredModel lower(const Model& model, const LoweringOptions& options);

}  // namespace orrery::onnx
