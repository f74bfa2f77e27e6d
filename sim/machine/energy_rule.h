// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What fetching a 32-bit word from memory costs, in multiply-adds. The rule of thumb is 100 to
/// 1000; in 45 nm 640 pJ over 4.6 pJ (0.9 the addition, 3.7 the multiplication), 139 (Horowitz,
/// ISSCC 2014). As there, both sides are bare: the memory without caches, the arithmetic without
/// registers, instructions and clock tree.
double multiply_adds_per_word(JoulesPerByte memory, JoulesPerFlop multiply_add);

/// The rule for one device.
struct WordCost {
  Precision precision = Precision::kBf16;  ///< precision of the multiply-adds
  Joules word;                             ///< energy of 4 bytes out of the memory itself
  Joules multiply_add;                     ///< energy of one, 2 FLOP
  double multiply_adds = 0;                ///< ratio of the two
};

/// With bf16, or the first of fp16, fp8, int8 and fp32 that the device has; nothing where
/// energy.multiply_add is not known.
std::optional<WordCost> word_cost(const AcceleratorConfig& accelerator);

}  // namespace orrery
