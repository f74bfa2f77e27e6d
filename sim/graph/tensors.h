// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/graph/operator_graph.h"
#include "sim/units/units.h"

namespace orrery {

using TensorId = std::uint32_t;

/// Why a tensor is in memory.
enum class TensorRole : std::uint8_t {
  kActivation,  ///< kept from a forward to a backward pass
  kWorking,     ///< alive only while one layer runs
  kLogits,      ///< scores of the vocabulary and what the loss makes of them
  kGradient,    ///< gradients of weights that a step makes and frees
};
inline constexpr std::size_t kTensorRoles = 4;
/// "activations", "working", "logits", "gradients": parts of memory as results name them.
const char* to_string(TensorRole role);

/// A tensor of one rank that outlives the operator which makes it.
struct Tensor {
  std::string name;
  Bytes bytes;
  TensorRole role = TensorRole::kActivation;
};

/// What an operator does to a tensor. One that is freed is used by the operator that frees it.
struct TensorEvent {
  enum class What : std::uint8_t { kMakes, kUses, kFrees };
  What what = What::kMakes;
  TensorId tensor = 0;
  OperatorId op = 0;
};

}  // namespace orrery
