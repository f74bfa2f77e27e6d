// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/parts/kept_tensors.h"
#include "workloads/layers/parts/linear.h"

namespace orrery {

enum class GraphPart : std::uint8_t;

/// An operation on one rank. Forward passes run a list of operations in order, backward
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
  /// With which part of a training step the host issues its kernels; none: that of the operation
  /// before it in a pass.
  std::optional<GraphPart> part = std::nullopt;
};

void run_forward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops);
void run_backward(StepList& steps, const LayerTask& task, const std::vector<LayerOp>& ops);
/// The same as a list of its own, whose steps tell tensors where the task asks for them.
StepList forward_pass(const LayerTask& task, const std::vector<LayerOp>& ops);
StepList backward_pass(const LayerTask& task, const std::vector<LayerOp>& ops);

/// Appends operations of a part of a training step.
void append(std::vector<LayerOp>& ops, GraphPart part, std::vector<LayerOp> more);
/// Operations as one, of a rank whose work is what `own` makes of the layer's.
LayerOp with_work(RankWork (*own)(RankWork),
                  std::function<std::vector<LayerOp>(const LayerTask& task)> ops);
/// Stands behind operations that selective recomputation of `module` computes again before their
/// gradients, from the norm of the MLP on where that was dropped too.
LayerOp again_op(const LayerTask& task, RecomputeModule module, const std::vector<LayerOp>& ops);

/// Kernels, one after the other.
LayerOp::Emit kernels(std::vector<Kernel> all);

/// Column-parallel matrices that read the normed input of the layer and keep it.
/// @param norm the name of the norm, which selective recomputation may compute again
LayerOp input_op(const std::vector<Linear>& linears, std::string norm);
/// A norm of all columns of the model, and the gradients of its input and weights.
LayerOp norm_op(const std::string& name, const LayerTask& task, PastBlock past,
                std::vector<KeptTensor> keeps = {});
/// The norm in front of a mixer, MLP or experts once more, where selective recomputation dropped
/// its `output`.
void norm_again(StepList& steps, const LayerTask& task, const std::string& norm,
                KeptTensor output = kept::attention_input);
/// Column-parallel matrices that read `width` columns.
LayerOp column_op(const std::vector<Linear>& linears, std::int64_t width,
                  std::vector<KeptTensor> needs = {});
/// A row-parallel matrix; by default the layer says whether its output is scattered.
LayerOp row_op(const Linear& linear, std::vector<KeptTensor> needs = {},
               std::optional<RowOutput> output = std::nullopt);
/// The row-parallel matrix behind the core of attention, which shares what it reads with the core.
LayerOp core_output_op(Linear linear, std::optional<RowOutput> output = std::nullopt);
/// A matrix that every rank applies to its own rows.
LayerOp local_op(const Linear& linear, std::int64_t rows, std::vector<KeptTensor> needs = {});

// Parts of layers, from a normed input to the output before the residual.
/// Operations of an MLP up to the input of the last product.
std::vector<LayerOp> mlp_inner_ops(const LayerTask& task);
std::vector<LayerOp> mlp_ops(const LayerTask& task);
std::vector<LayerOp> moe_ops(const LayerTask& task);
/// From the residual stream behind self-attention to that behind attention to the encoder.
std::vector<LayerOp> cross_half(const LayerTask& task);
/// What their steps and tensors are called besides.
inline constexpr const char* kCrossPart = "cross ";

}  // namespace orrery
