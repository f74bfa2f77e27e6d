// SPDX-License-Identifier: Apache-2.0
#include "sim/machine/energy_rule.h"

#include <array>

namespace orrery {
namespace {

constexpr Bytes kWord(4);
constexpr Flops kMultiplyAdd(2);

}  // namespace

double multiply_adds_per_word(JoulesPerByte memory, JoulesPerFlop multiply_add) {
  return kWord * memory / (kMultiplyAdd * multiply_add);
}

std::optional<WordCost> word_cost(const AcceleratorConfig& accelerator) {
  constexpr std::array<Precision, 5> kPreferred = {
      Precision::kBf16, Precision::kFp16, Precision::kFp8, Precision::kInt8, Precision::kFp32};
  const EnergyConfig& energy = accelerator.energy;
  const JoulesPerByte on_chip =
      energy.cache.value.base() > 0 ? energy.cache.value : energy.shared.value;
  const JoulesPerByte memory = energy.memory.value - on_chip;
  for (const Precision precision : kPreferred) {
    const auto entry = energy.multiply_add.find(precision);
    if (entry == energy.multiply_add.end() || entry->second.value.base() <= 0) continue;
    return WordCost{.precision = precision,
                    .word = kWord * memory,
                    .multiply_add = kMultiplyAdd * entry->second.value,
                    .multiply_adds = multiply_adds_per_word(memory, entry->second.value)};
  }
  return std::nullopt;
}

}  // namespace orrery
