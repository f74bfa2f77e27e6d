// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/graph/kernel.h"

namespace orrery {

/// A kernel as one line, "m=64 n=128 k=32 matrix_flops=524288 ...": what it computes and moves,
/// as graphs of other programs tell it, what is as it is by default left out. Class, name, rows of
/// experts, uneven caches, and launches that others save are left out too. FLOPs and bytes are SI
/// base units.
std::string kernel_text(const Kernel& kernel);

/// The kernel of such a line; nothing for what is none. Keys that are unknown are passed over.
std::optional<Kernel> kernel_of_text(std::string_view text);

}  // namespace orrery
