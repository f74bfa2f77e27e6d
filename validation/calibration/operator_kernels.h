// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/graph/kernel.h"
#include "validation/importers/operator_table.h"

namespace orrery {

/// The precision that a row ran in: prefill of bf16 queries over an fp8 cache runs in fp8.
/// Nothing for formats that no kernel here has.
std::optional<Precision> row_precision(OperatorTableKind kind, const OperatorRow& row);

/// How the weights of a row are stored: "w4a8_mxfp4_mxfp8" has elements of four bits that run in
/// fp8, "w4a16_mxfp4" in bf16. Scales are left out, as WeightFormat has none.
WeightFormat row_weights(const OperatorRow& row);

/// The kernels whose times add up to what a row measured: narrow GEMMs come with the quantisation
/// of their bf16 input, a mixture of experts is what its most loaded rank runs (quantisation in it
/// is fused, and counts as part of its products).
/// @param precision of row_precision()
std::vector<Kernel> operator_kernels(OperatorTableKind kind, const OperatorRow& row,
                                     Precision precision);

}  // namespace orrery
