// SPDX-License-Identifier: Apache-2.0
#include "sim/app/derived_figures.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "sim/machine/energy_rule.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// A derived quantity to four digits; more would pretend to a precision that its sources lack.
template <class Quantity>
std::string rounded(Quantity value) {
  std::array<char, 32> digits;
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value.base(),
                                 std::chars_format::scientific, 3);
  double nearest = 0;
  std::from_chars(digits.data(), end.ptr, nearest);
  return print(Quantity(nearest));
}

void append_word_cost(const AcceleratorConfig& accelerator, Description& figures) {
  const std::optional<WordCost> cost = word_cost(accelerator);
  if (!cost) return;
  const std::string precision = to_string(cost->precision);
  figures.text += "a 32-bit word of memory costs " + print_number(std::round(cost->multiply_adds)) +
                  " multiply-adds of " + precision + " (" + rounded(cost->word) + " over " +
                  rounded(cost->multiply_add) + ")\n";
  figures.json["word_cost"] = {{"precision", precision},
                               {"word_j", cost->word.base()},
                               {"multiply_add_j", cost->multiply_add.base()},
                               {"multiply_adds", cost->multiply_adds}};
}

void append_part(const AcceleratorConfig& accelerator, Description& figures) {
  if (!accelerator.partition) return;
  const ComputeConfig& compute = accelerator.compute;
  const MemoryConfig& memory = accelerator.memory;
  std::string rates;
  Json matrix = Json::object();
  for (const auto& [precision, rate] : compute.matrix) {
    rates += ", " + std::string(to_string(precision)) + " " + rounded(rate.value);
    matrix[to_string(precision)] = rate.value.base();
  }
  figures.text += "values are those of the whole device; this part has " +
                  std::to_string(compute.units.value) + " " + compute.unit_kind + rates +
                  ", vector " + rounded(compute.vector.value) + ", memory " +
                  rounded(memory.capacity.value) + " at " + rounded(memory.bandwidth.value) + "\n";
  figures.json["part"] = {{"units", compute.units.value},
                          {"matrix_flops_per_s", std::move(matrix)},
                          {"vector_flops_per_s", compute.vector.value.base()},
                          {"memory_bytes", memory.capacity.value.base()},
                          {"memory_bytes_per_s", memory.bandwidth.value.base()}};
}

}  // namespace

Description derived_figures(const AcceleratorConfig& accelerator) {
  Description figures{.text = {}, .json = Json::object()};
  append_word_cost(accelerator, figures);
  append_part(accelerator, figures);
  return figures;
}

}  // namespace orrery
