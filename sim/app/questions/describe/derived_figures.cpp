// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/derived_figures.h"

#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "models/kernels/device/dram.h"
#include "sim/machine/clock.h"
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

void append_word_cost(const AcceleratorConfig& accelerator, Answer& figures) {
  const std::optional<WordCost> cost = word_cost(accelerator);
  if (!cost) return;
  const std::string precision = to_string(cost->precision);
  figures.add("a 32-bit word of memory costs " + print_number(std::round(cost->multiply_adds)) +
              " multiply-adds of " + precision + " (" + rounded(cost->word) + " over " +
              rounded(cost->multiply_add) + ")\n");
  figures.json["word_cost"] = {{"precision", precision},
                               {"word_j", cost->word.base()},
                               {"multiply_add_j", cost->multiply_add.base()},
                               {"multiply_adds", cost->multiply_adds}};
}

void append_part(const AcceleratorConfig& accelerator, Answer& figures) {
  if (!accelerator.partition) return;
  const ComputeConfig& compute = accelerator.compute;
  const MemoryConfig& memory = accelerator.memory;
  std::string rates;
  Json matrix = Json::object();
  for (const auto& [precision, rate] : compute.matrix) {
    rates += ", " + std::string(to_string(precision)) + " " + rounded(rate.value);
    matrix[to_string(precision)] = rate.value.base();
  }
  figures.add("values are those of the whole device; this part has " +
              std::to_string(compute.units.value) + " units" + rates + ", vector " +
              rounded(compute.vector.value) + ", memory " + rounded(memory.capacity.value) +
              " at " + rounded(memory.bandwidth.value) + "\n");
  figures.json["part"] = {{"units", compute.units.value},
                          {"matrix_flops_per_s", std::move(matrix)},
                          {"vector_flops_per_s", compute.vector.value.base()},
                          {"memory_bytes", memory.capacity.value.base()},
                          {"memory_bytes_per_s", memory.bandwidth.value.base()}};
}

std::string percent(double share) { return print_number(std::round(1000 * share) / 10) + " %"; }

/// Share of the memory peak that its organisation allows (models/kernels/device/dram.h).
void append_memory(const AcceleratorConfig& accelerator, Answer& figures) {
  const auto dram = dram_efficiency(accelerator.memory);
  if (!dram) return;
  const double copies = dram->stream(0.5);
  std::string text = "of the memory's peak, by refresh and turnarounds of the bus: reads " +
                     percent(dram->read) + ", copies " + percent(copies) + "; random pieces of";
  Json pieces = Json::object();
  const char* separator = " ";
  for (const int bytes : {32, 64, 128, 256}) {
    const double share = random_read_efficiency(accelerator.memory, Bytes(bytes)).value_or(0);
    const std::string size = std::to_string(bytes);
    text.append(separator).append(size).append(" B ").append(percent(share));
    pieces[size] = share;
    separator = ", ";
  }
  figures.add(text + "\n");
  figures.json["memory_efficiency"] = {{"read", dram->read},
                                       {"copy", copies},
                                       {"turnaround", dram->turnaround},
                                       {"random_bytes", std::move(pieces)}};
}

/// The clock of long products under the power cap (clock.h).
void append_clock(const AcceleratorConfig& accelerator, Answer& figures) {
  const Precision precision = accelerator.compute.matrix.contains(Precision::kBf16)
                                  ? Precision::kBf16
                                  : accelerator.compute.matrix.begin()->first;
  const ClockState state = sustained_clock(accelerator, long_product(accelerator, precision));
  figures.add("long products of " + std::string(to_string(precision)) + " keep up " +
              rounded(state.clock) + " of " + rounded(boost_clock(accelerator)) + ", at " +
              rounded(state.power) + " of " + rounded(accelerator.power.cap()) +
              " (estimate, from the energies above)\n");
  figures.json["sustained"] = {{"precision", to_string(precision)},
                               {"clock_hz", state.clock.base()},
                               {"power_w", state.power.base()}};
}

}  // namespace

bool is_remark(std::string_view path) {
  return path.starts_with("approximations.") || path.starts_with("known_errors.");
}

Answer derived_figures(const AcceleratorConfig& accelerator) {
  Answer figures{.parts = {}, .json = Json::object()};
  append_word_cost(accelerator, figures);
  append_memory(accelerator, figures);
  append_clock(accelerator, figures);
  append_part(accelerator, figures);
  for (const std::string& line : accelerator.approximations)
    figures.add("approximation: " + line + "\n");
  if (!accelerator.approximations.empty())
    figures.json["approximations"] = accelerator.approximations;
  for (const KnownError& known : accelerator.known_errors)
    figures.add("known error: " + known.error + " (" + known.source + ")\n");
  return figures;
}

}  // namespace orrery
