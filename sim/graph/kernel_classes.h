// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/graph/kernel.h"

namespace orrery {

/// All classes of kernels by the names that files use: those of KernelClass, and behind them those
/// that files of the program add.
const std::vector<std::pair<KernelClass, const char*>>& kernel_classes();

std::optional<KernelClass> kernel_class_named(std::string_view name);

/// The class of that name, which is a new one where none has it. Files that make or price kernels
/// of a class of their own have `const KernelClass kSort = added_kernel_class("sort");`. Where no
/// family is registered for it, the roofline predicts it by priors of its own.
/// @param name has to live as long as the program
/// @throws std::logic_error for more than 256 classes
KernelClass added_kernel_class(const char* name);

}  // namespace orrery
