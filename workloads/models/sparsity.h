// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"

namespace orrery {

/// Structured zeros of the weights of products.
enum class Sparsity : std::uint8_t { kDense, kTwoOfFour };

template <>
struct config::EnumNames<Sparsity> {
  static constexpr std::pair<Sparsity, const char*> values[] = {{Sparsity::kDense, "none"},
                                                                {Sparsity::kTwoOfFour, "2:4"}};
};

}  // namespace orrery
