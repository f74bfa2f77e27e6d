// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/questions/describe/system_figures.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Value = std::optional<double>;

// A published value that simulations do not use. Numbered from 1 in the order in which rows show
// them.
struct Difference {
  std::string system;
  SeenFact input;
};

struct SystemCell {
  Value published, simulated;  // in the row's unit
  std::vector<std::size_t> differences;
  bool estimated = false;
};

struct SystemRow {
  std::string label, unit;
  int decimals = 0;
  std::vector<SystemCell> cells;  // by system
};

struct Comparison {
  std::vector<SystemRow> rows;
  std::vector<Difference> differences;
};

// The largest unit in which no value of the row is below 1, so that all cells have one unit.
const Scale& choose_scale(const std::vector<Scale>& scales, double smallest) {
  const Scale* chosen = &scales.front();
  for (const Scale& scale : scales)
    if (smallest >= scale.base) chosen = &scale;
  return *chosen;
}

std::size_t difference_index(Comparison& comparison, const SystemConfig& system,
                             const SeenFact& input) {
  auto& known = comparison.differences;
  const auto found = std::ranges::find_if(known, [&](const Difference& d) {
    return d.system == system.name && d.input.key == input.key;
  });
  if (found != known.end()) return static_cast<std::size_t>(found - known.begin());
  known.push_back({system.name, input});
  return known.size() - 1;
}

void add_row(Comparison& comparison, const Figure& figure,
             const std::vector<SystemConfig>& systems) {
  SystemRow row;
  row.label = figure.label;
  double smallest = INFINITY;
  for (const SystemConfig& system : systems) {
    SystemCell cell;
    cell.published = value_of(figure, system, true);
    cell.simulated = value_of(figure, system, false);
    if (cell.published) smallest = std::min(smallest, *cell.published);
    for (const SeenFact& input : inputs_of(figure, system)) {
      cell.estimated |= input.estimated() && cell.published.has_value();
      if (input.differs()) cell.differences.push_back(difference_index(comparison, system, input));
    }
    std::ranges::sort(cell.differences);
    row.cells.push_back(std::move(cell));
  }
  if (std::isinf(smallest)) return;  // no system has it
  const Scale& scale = choose_scale(figure.scales, smallest);
  row.unit = scale.unit;
  row.decimals = figure.decimals.value_or(smallest / scale.base < 100 ? 1 : 0);
  for (SystemCell& cell : row.cells) {
    if (cell.published) *cell.published /= scale.base;
    if (cell.simulated) *cell.simulated /= scale.base;
  }
  comparison.rows.push_back(std::move(row));
}

Comparison compare(const std::vector<SystemConfig>& systems) {
  Comparison comparison;
  for (const Figure& figure : all_figures()) add_row(comparison, figure, systems);
  return comparison;
}

// What a system is made of, in words.
struct Part {
  std::string label;
  std::string (*name)(const SystemConfig&);
};

std::string kind_of(const PortConfig& port) { return port.present() ? port.kind : "-"; }

const std::vector<Part> kParts = {
    {"chip", [](const SystemConfig& s) { return s.accelerator.name; }},
    {"chip memory", [](const SystemConfig& s) { return s.accelerator.memory.kind; }},
    {"host memory", [](const SystemConfig& s) { return s.host.memory_kind; }},
    {"scale-up fabric", [](const SystemConfig& s) { return kind_of(s.accelerator.scale_up); }},
    {"scale-out network", [](const SystemConfig& s) { return kind_of(s.accelerator.scale_out); }}};
const Part kMachine = {"machine", [](const SystemConfig& s) {
                         return s.installation ? s.installation->name : std::string("-");
                       }};

/// The rows in words; that of machines where one was built of a system.
std::vector<Part> parts_of(const std::vector<SystemConfig>& systems) {
  std::vector<Part> parts = kParts;
  if (std::ranges::any_of(systems,
                          [](const SystemConfig& s) { return s.installation.has_value(); }))
    parts.push_back(kMachine);
  return parts;
}

Value ratio(const SystemRow& row) {
  if (row.cells.size() < 2 || !row.cells[0].published || !row.cells[1].published) return {};
  return *row.cells[1].published / *row.cells[0].published;
}

// One decimal, more where that would print zero.
std::string print_ratio(const Value& factor) {
  if (!factor) return "-";
  int decimals = 1;
  for (double shifted = *factor * 10; shifted < 1 && decimals < 6; shifted *= 10) ++decimals;
  return print_grouped(*factor, decimals) + "x";
}

std::string print_value(const Value& value, const SystemRow& row) {
  if (!value) return "-";
  return print_grouped(*value, row.decimals) + (row.unit.empty() ? "" : " " + row.unit);
}

std::string print_simulated(const SystemRow& row, const std::vector<SystemConfig>& systems) {
  std::string text;
  for (std::size_t i = 0; i < row.cells.size(); ++i) {
    const SystemCell& cell = row.cells[i];
    if (cell.differences.empty()) continue;
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", systems[i].name,
                        print_value(cell.simulated, row));
    for (const std::size_t note : cell.differences) text += fmt::format(" [{}]", note + 1);
  }
  return text;
}

std::string note(std::size_t number, const Difference& difference) {
  const SeenFact& input = difference.input;
  return fmt::format(
      "[{}] {}, {}: simulations use {}, published is {}: {}\n    used: {}\n    published: {}\n",
      number, difference.system, input.key, input.simulated_text, input.published_text,
      input.reason, input.simulated_source, input.published_source);
}

Table table_of(const Comparison& comparison, const std::vector<SystemConfig>& systems) {
  const bool with_ratio = systems.size() > 1;
  const bool with_simulated = !comparison.differences.empty();
  std::vector<Table::Column> columns = {{"as published", Table::Align::kLeft}};
  for (const SystemConfig& system : systems) columns.push_back({system.name, Table::Align::kRight});
  if (with_ratio) columns.push_back({"ratio", Table::Align::kRight});
  if (with_simulated) columns.push_back({"simulations use", Table::Align::kLeft});

  const std::size_t width = columns.size();
  Table table(std::move(columns));
  for (const Part& part : parts_of(systems)) {
    std::vector<std::string> cells = {part.label};
    for (const SystemConfig& system : systems) cells.push_back(part.name(system));
    cells.resize(width);
    table.add_row(std::move(cells));
  }
  for (const SystemRow& row : comparison.rows) {
    std::vector<std::string> cells = {row.label};
    for (const SystemCell& cell : row.cells)
      cells.push_back(print_value(cell.published, row) + (cell.estimated ? " (estimate)" : ""));
    if (with_ratio) cells.push_back(print_ratio(ratio(row)));
    if (with_simulated) cells.push_back(print_simulated(row, systems));
    table.add_row(std::move(cells));
  }
  return table;
}

/// The differences that the table numbers, and the remarks of systems.
std::string notes_of(const Comparison& comparison, const std::vector<SystemConfig>& systems) {
  std::string text = comparison.differences.empty() ? "" : "\n";
  for (std::size_t i = 0; i < comparison.differences.size(); ++i)
    text += note(i + 1, comparison.differences[i]);
  for (const SystemConfig& system : systems) {
    if (!system.remarks.empty()) text += "\n";
    for (const std::string& remark : system.remarks)
      text += fmt::format("{}: {}\n", system.name, remark);
  }
  return text;
}

nlohmann::ordered_json to_json(const Comparison& comparison,
                               const std::vector<SystemConfig>& systems) {
  Json json = {{"systems", Json::array()}, {"parts", Json::object()}, {"rows", Json::array()}};
  const std::vector<Part> parts = parts_of(systems);
  for (const SystemConfig& system : systems) {
    json["systems"].push_back(system.name);
    for (const Part& part : parts) json["parts"][part.label].push_back(part.name(system));
  }
  for (const SystemRow& row : comparison.rows) {
    Json published = Json::array(), simulated = Json::array(), estimated = Json::array();
    for (const SystemCell& cell : row.cells) {
      published.push_back(or_null(cell.published));
      simulated.push_back(or_null(cell.simulated));
      estimated.push_back(cell.estimated);
    }
    json["rows"].push_back({{"label", row.label},
                            {"unit", row.unit},
                            {"published", published},
                            {"simulated", simulated},
                            {"ratio", or_null(ratio(row))},
                            {"estimated", estimated}});
  }
  json["differences"] = Json::array();
  for (const auto& [system, input] : comparison.differences)
    json["differences"].push_back({{"system", system},
                                   {"key", input.key},
                                   {"published", input.published_text},
                                   {"simulated", input.simulated_text},
                                   {"reason", input.reason},
                                   {"published_source", input.published_source},
                                   {"simulated_source", input.simulated_source}});
  return json;
}

}  // namespace

Answer describe_systems(const std::vector<SystemConfig>& systems) {
  const Comparison comparison = compare(systems);
  return {.parts = {table_of(comparison, systems), notes_of(comparison, systems)},
          .json = to_json(comparison, systems)};
}

}  // namespace orrery
