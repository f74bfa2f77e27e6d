// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace orrery {

/// The part of a transformer that a kernel of a step belongs to, by the kernel's name: "attention",
/// "MLP", "experts", "embedding", "head and loss" or "optimizer"; "other" for names that no part
/// has; "vision tower" for what works on images. What makes or takes gradients belongs where its
/// forward kernel does.
std::string_view module_of(std::string_view kernel);

}  // namespace orrery
