// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe_accelerator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/kernels/device/dram.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/clock.h"
#include "sim/machine/doubts.h"
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

/// What follows from the values of an accelerator, in lines and as members of its JSON object:
///  - `word_cost`: the multiply-adds that a 32-bit word of memory costs (energy_rule.h), where the
///    device has energy.multiply_add;
///  - `part`: units, rates and memory of the part of a device, where it has a partition; the values
///    themselves are those of the whole.
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

/// Whether a value is a sentence, which is printed below the table of values.
bool is_remark(std::string_view path) {
  return path.starts_with("approximations.") || path.starts_with("known_errors.");
}

bool is_source(std::string_view path) {
  return path.size() > std::string_view(".source").size() && path.ends_with(".source");
}

// The text of one of the keys of a Fact, or empty.
std::string fact_text(const config::Node* fact, const char* key) {
  const config::Node* text = fact ? fact->find(key) : nullptr;
  return text ? text->text() : std::string();
}

/// A value of several accelerators.
struct Row {
  std::string path;
  std::vector<std::string> cells;             // by device; empty: it has none
  std::vector<std::optional<double>> values;  // in base units
};

std::string cell_of(const config::Node& device, const config::Leaf& leaf) {
  const config::Node* fact = device.at_path(leaf.path);
  const config::Node* published = fact != nullptr ? fact->find("nameplate") : nullptr;
  return leaf.text + (published != nullptr ? " (published " + published->text() + ")" : "");
}

Row& row_of(std::vector<Row>& rows, const std::string& path, std::size_t devices) {
  const auto known =
      std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.path == path; });
  if (known != rows.end()) return *known;
  rows.push_back({path, std::vector<std::string>(devices), {}});
  rows.back().values.resize(devices);
  return rows.back();
}

std::vector<Row> rows_of(const std::vector<NamedDevice>& devices) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    for (const config::Leaf& leaf :
         config::flatten(devices[i].node, AcceleratorConfig::schema().record())) {
      if (is_remark(leaf.path) || is_source(leaf.path)) continue;
      Row& row = row_of(rows, leaf.path, devices.size());
      row.cells[i] = cell_of(devices[i].node, leaf);
      row.values[i] = leaf.value;
    }
  }
  return rows;
}

std::string ratio_of(const Row& row) {
  if (!row.values[0] || !row.values[1] || *row.values[0] == 0) return "-";
  char text[32];
  std::snprintf(text, sizeof text, "%.3gx", *row.values[1] / *row.values[0]);
  return text;
}

}  // namespace

Answer describe_accelerator(const std::string& name, const AcceleratorConfig& accelerator,
                            const config::Node& file) {
  Table table({{name, Table::Align::kLeft},
               {"simulations use", Table::Align::kRight},
               {"published", Table::Align::kRight},
               {"source", Table::Align::kLeft}});
  Json values = Json::array();
  for (const auto& leaf : config::flatten(file, AcceleratorConfig::schema().record())) {
    const config::Node* fact = file.at_path(leaf.path);
    const std::string source = fact_text(fact, "source");
    const std::string nameplate = fact_text(fact, "nameplate");
    const std::string nameplate_source = fact_text(fact, "nameplate_source");
    const std::string reason = fact_text(fact, "reason");
    std::string origin = source;
    if (!nameplate.empty())
      origin.append("; published: ").append(nameplate_source).append("; ").append(reason);
    const bool is_text = is_source(leaf.path);
    if (!is_remark(leaf.path))
      table.add_row({leaf.path, is_text ? "" : leaf.text, nameplate, is_text ? leaf.text : origin});
    Json row = {{"path", leaf.path}, {"text", leaf.text}};
    if (leaf.value) row["value"] = *leaf.value;
    row.update({{"unit", leaf.unit}, {"source", source}, {"origin", leaf.origin}});
    if (!nameplate.empty()) {
      row.update(
          {{"nameplate", nameplate}, {"nameplate_source", nameplate_source}, {"reason", reason}});
    }
    values.push_back(std::move(row));
  }
  const Answer figures = derived_figures(accelerator);
  config::Diagnostics doubtful;
  for (const config::KeyError& doubt : doubts(accelerator))
    config::report(doubt, file, doubtful, config::Diagnostic::Severity::kWarning);
  Answer answer{.parts = {std::move(table)},
                .json = {{"name", name}, {"values", std::move(values)}}};
  answer.add(figures);
  answer.json.update(figures.json);
  answer.warnings = doubtful.render_warnings();
  return answer;
}

Table compare_accelerators(const std::vector<NamedDevice>& devices) {
  std::vector<Table::Column> columns = {{"simulations use"}};
  for (const NamedDevice& device : devices) columns.push_back({device.name, Table::Align::kRight});
  columns.push_back({"ratio", Table::Align::kRight});
  Table table(std::move(columns));
  for (const Row& row : rows_of(devices)) {
    std::vector<std::string> cells = {row.path};
    for (const std::string& cell : row.cells) cells.push_back(cell.empty() ? "-" : cell);
    cells.push_back(ratio_of(row));
    table.add_row(std::move(cells));
  }
  return table;
}

}  // namespace orrery
