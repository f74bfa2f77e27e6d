// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/kernels/measured_model.h"
#include "sim/graph/kernel.h"
#include "validation/calibration/block_kernels.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The precision that a row ran in: prefill of bf16 queries over an fp8 cache runs in fp8.
/// Nothing for formats that no kernel here has, and for blocks that cannot be built.
std::optional<Precision> row_precision(OperatorTableKind kind, const OperatorRow& row);

/// How the weights of a row are stored: "w4a8_mxfp4_mxfp8" has elements of four bits that run in
/// fp8, "w4a16_mxfp4" in bf16. Scales are left out, as WeightFormat has none.
WeightFormat row_weights(const OperatorRow& row);

/// The kernels whose times add up to what a row measured: narrow GEMMs come with the quantisation
/// of their bf16 input, a mixture of experts is what its most loaded rank runs (quantisation in it
/// is fused, and counts as part of its products).
/// @param precision of row_precision()
/// @param software what blocks of a model depend on beside their shape
std::vector<Kernel> operator_kernels(OperatorTableKind kind, const OperatorRow& row,
                                     Precision precision, const RowSoftware& software = {});

/// The part of a row's shape that belongs to a model rather than to its load: (n, k) of a GEMM,
/// (heads, kv_heads, head_dim) of attention, (batch, heads) of latent attention, (hidden,
/// expert_ffn, top_k, experts) of a mixture of experts, the size of a stream, kernel and columns of
/// row kernels. A fit sees some groups whole and is judged on the others, as a user's model is a
/// group that nobody measured.
std::string shape_group(OperatorTableKind kind, const OperatorRow& row);

/// Whether fits leave the group out: one in four, by the hash of its name, so the same groups on
/// every device.
bool is_held_out(const std::string& group);

/// The kernels of an accelerator that a table has measured. Where a row is several kernels, those
/// it is about (the product behind a quantisation, both products of a mixture of experts) share
/// what the `others` leave of the measured time, in proportion to what `others` says of them.
std::vector<MeasuredKernel> measured_kernels(const OperatorTable& table,
                                             const AcceleratorConfig& accelerator,
                                             const KernelModel& others);

}  // namespace orrery
