// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/kernels/device/dram.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/clock.h"
#include "sim/machine/doubts.h"
#include "sim/machine/energy_rule.h"
#include "sim/units/comma_separated.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;

/// A derived quantity to four digits; more would pretend to a precision that its sources lack.
template <class Quantity>
std::string rounded(Quantity value) {
  const std::string digits = fmt::format("{:.3e}", value.base());
  return print(Quantity(std::stod(digits)));
}

void append_word_cost(const AcceleratorConfig& accelerator, Answer& figures) {
  const std::optional<WordCost> cost = word_cost(accelerator);
  if (!cost) return;
  const std::string precision = to_string(cost->precision);
  figures.add(fmt::format("a 32-bit word of memory costs {} multiply-adds of {} ({} over {})\n",
                          print_number(std::round(cost->multiply_adds)), precision,
                          rounded(cost->word), rounded(cost->multiply_add)));
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
    rates += fmt::format(", {} {}", to_string(precision), rounded(rate.value));
    matrix[to_string(precision)] = rate.value.base();
  }
  figures.add(fmt::format(
      "values are those of the whole device; this part has {} units{}, vector {}, memory {} at "
      "{}\n",
      compute.units.value, rates, rounded(compute.vector.value), rounded(memory.capacity.value),
      rounded(memory.bandwidth.value)));
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
  std::vector<std::string> shares;
  Json pieces = Json::object();
  for (const int bytes : {32, 64, 128, 256}) {
    const double share = random_read_efficiency(accelerator.memory, Bytes(bytes)).value_or(0);
    shares.push_back(fmt::format("{} B {}", bytes, percent(share)));
    pieces[std::to_string(bytes)] = share;
  }
  figures.add(fmt::format(
      "of the memory's peak, by refresh and turnarounds of the bus: reads {}, copies {}; random "
      "pieces of {}\n",
      percent(dram->read), percent(copies), comma_joined(shares)));
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
  figures.add(fmt::format(
      "long products of {} keep up {} of {}, at {} of {} (estimate, from the energies above)\n",
      to_string(precision), rounded(state.clock), rounded(boost_clock(accelerator)),
      rounded(state.power), rounded(accelerator.power.cap())));
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
    figures.add(fmt::format("known error: {} ({})\n", known.error, known.source));
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
  if (published == nullptr) return leaf.text;
  return fmt::format("{} (published {})", leaf.text, published->text());
}

Row& row_of(std::vector<Row>& rows, const std::string& path, std::size_t devices) {
  const auto known = std::ranges::find(rows, path, &Row::path);
  if (known != rows.end()) return *known;
  rows.push_back({path, std::vector<std::string>(devices), {}});
  rows.back().values.resize(devices);
  return rows.back();
}

std::vector<Row> rows_of(const std::vector<std::pair<std::string, config::Node>>& devices) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const config::Node& device = devices[i].second;
    for (const config::Leaf& leaf : config::flatten(device, AcceleratorConfig::schema().record())) {
      if (is_remark(leaf.path) || is_source(leaf.path)) continue;
      Row& row = row_of(rows, leaf.path, devices.size());
      row.cells[i] = cell_of(device, leaf);
      row.values[i] = leaf.value;
    }
  }
  return rows;
}

std::string ratio_of(const Row& row) {
  if (!row.values[0] || !row.values[1] || *row.values[0] == 0) return "-";
  return fmt::format("{:.3g}x", *row.values[1] / *row.values[0]);
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
    const std::string origin =
        nameplate.empty() ? source
                          : fmt::format("{}; published: {}; {}", source, nameplate_source, reason);
    const bool is_text = is_source(leaf.path);
    if (!is_remark(leaf.path))
      table.add_row({leaf.path, is_text ? "" : leaf.text, nameplate, is_text ? leaf.text : origin});
    Json row = {{"path", leaf.path}, {"text", leaf.text}};
    if (leaf.value) row["value"] = *leaf.value;
    row.update({{"unit", leaf.unit}, {"source", source}, {"origin", leaf.origin}});
    if (!nameplate.empty())
      row.update(
          {{"nameplate", nameplate}, {"nameplate_source", nameplate_source}, {"reason", reason}});
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

Table compare_accelerators(const std::vector<std::pair<std::string, config::Node>>& devices) {
  std::vector<Table::Column> columns = {{"simulations use"}};
  for (const auto& [name, node] : devices) columns.push_back({name, Table::Align::kRight});
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
