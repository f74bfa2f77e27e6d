// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// One kernel that does the work of two, the second of which reads all that the first writes, which
/// then does not go to memory; nothing where they stay two.
std::optional<Kernel> joined_pair(const Kernel& first, const Kernel& second);

/// Whether a product can be that of scores, [queries x keys] a head, and another one that of these
/// with values: as many heads and queries, and columns as the other has keys.
bool are_scores_and_values(const Kernel& scores, const Kernel& values);

/// The attention kernel of a chain, each kernel of which reads what the one before it writes:
/// scores, elementwise kernels, the softmax over them, elementwise kernels and values. Nothing
/// where it is none. All query-key pairs are computed, so that FLOPs are those of the chain; bytes
/// are those of the chain but for what one of its kernels leaves to the next.
std::optional<Kernel> joined_attention(const std::vector<const Kernel*>& chain);

}  // namespace orrery
