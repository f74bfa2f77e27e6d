// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "workloads/formats/graph_builder.h"
#include "workloads/formats/onnx/lowered.h"

namespace orrery::onnx {

/// Writes a model as kernels on one stream, with what they wait for.
/// @param fuses products do what follows them (fusion.h), kernels over the same elements are one
/// (element_groups.h)
void write_kernels(LoweredModel model, bool fuses, GraphBuilder& graph);

}  // namespace orrery::onnx
