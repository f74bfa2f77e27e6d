// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "validation/importers/operator_table.h"

namespace orrery {

/// The part of a row's shape that belongs to a model rather than to its load: (n, k) of a GEMM,
/// (heads, kv_heads, head_dim) of attention, (batch, heads) of latent attention, (hidden,
/// expert_ffn, top_k, experts) of a mixture of experts, the size of a stream, kernel and columns of
/// row kernels. A fit sees some groups whole and is judged on the others, as a user's model is a
/// group that nobody measured.
std::string shape_group(OperatorTableKind kind, const OperatorRow& row);

/// Whether fits leave the group out: one in four, by the hash of its name, so the same groups on
/// every device.
bool is_held_out(const std::string& group);

}  // namespace orrery
