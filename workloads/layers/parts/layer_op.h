// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/layer_parts.h"
#include "workloads/layers/parts/linear.h"
#include "workloads/ops/step_list.h"

namespace orrery {

/// An operation of a layer on one rank. Forward passes run a list of operations in order, backward
/// passes their gradients in reverse order.
struct LayerOp {
  using Emit = std::function<void(StepList& steps, const LayerTask& task)>;
  Emit forward = {};
  Emit gradient = {};                  ///< none: gradients pass it unchanged
  std::vector<KeptTensor> keeps = {};  ///< tensors that forward() leaves for gradient()
  std::vector<KeptTensor> makes = {};  ///< tensors that it leaves for gradients of other operations
  /// Tensors of other operations that gradient() reads. Of all operations that need a tensor, the
  /// gradient of the first one frees it; the others use it.
  std::vector<KeptTensor> needs = {};
};

void run_forward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops);
void run_backward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops);

/// Kernels, one after the other.
LayerOp::Emit kernels(std::vector<Kernel> all);

/// Column-parallel matrices that read the normed input of the layer and keep it.
/// @param norm the name of the norm, which selective recomputation may compute again
LayerOp input_op(const std::vector<Linear>& linears, std::string norm);
/// The norm in front of a mixer once more, where selective recomputation dropped its output.
void norm_again(StepList& steps, const LayerTask& task, const std::string& norm);
/// Column-parallel matrices that read `width` columns.
LayerOp column_op(const std::vector<Linear>& linears, std::int64_t width,
                  std::vector<KeptTensor> needs = {});
/// A row-parallel matrix; by default the layer says whether its output is scattered.
LayerOp row_op(const Linear& linear, std::vector<KeptTensor> needs = {},
               std::optional<RowOutput> output = std::nullopt);
/// The row-parallel matrix behind the core of attention, which shares what it reads with the core.
LayerOp core_output_op(Linear linear, std::optional<RowOutput> output = std::nullopt);
/// A matrix that every rank applies to its own rows (RankWork::row_tokens()).
LayerOp local_op(const Linear& linear, std::vector<KeptTensor> needs = {});

}  // namespace orrery
