// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/describe/facts.h"
#include "sim/machine/accelerator_config.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

/// One figure as published, and whether nobody published it.
struct TableFigure {
  double value = 0;  // in SI base units
  bool estimated = false;
};

struct Listed {
  std::string id;
  AcceleratorConfig device;
};

/// One column of figures: what it is called in JSON and to sort by, and in the table.
struct Column {
  std::string key, title;
  double unit = 1;   // of the table, in SI base units
  std::string fact;  // key of an accelerator; empty: the ratio of two
};

std::optional<TableFigure> figure_of(const AcceleratorConfig& a, const std::string& key) {
  if (key == "scale_up.bandwidth" && !a.scale_up.present()) return {};
  if (key == "scale_out.bandwidth" && !a.scale_out.present()) return {};
  const std::optional<SeenFact> fact = fact_at(a, key);
  if (!fact) return {};
  return TableFigure{fact->published, fact->published_source.find("estimate") != std::string::npos};
}

/// FLOP of the widest 16-bit rate that a byte of memory traffic pays for.
std::optional<TableFigure> intensity(const AcceleratorConfig& a) {
  for (const char* precision : {"bf16", "fp16", "int8"}) {
    const auto rate = figure_of(a, std::string("compute.matrix.") + precision);
    if (!rate) continue;
    const TableFigure memory = *figure_of(a, "memory.bandwidth");
    return TableFigure{rate->value / memory.value, rate->estimated || memory.estimated};
  }
  return {};
}

std::optional<TableFigure> figure_of(const AcceleratorConfig& a, const Column& column) {
  return column.fact.empty() ? intensity(a) : figure_of(a, column.fact);
}

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {{"year", "year", 1, "year"},
                                          {"vector", "fp32", 1e12, "compute.vector"},
                                          {"tf32", "tf32", 1e12, "compute.matrix.tf32"},
                                          {"fp16", "fp16", 1e12, "compute.matrix.fp16"},
                                          {"bf16", "bf16", 1e12, "compute.matrix.bf16"},
                                          {"fp8", "fp8", 1e12, "compute.matrix.fp8"},
                                          {"int8", "int8", 1e12, "compute.matrix.int8"},
                                          {"nvfp4", "nvfp4", 1e12, "compute.matrix.nvfp4"},
                                          {"capacity", "GB", 1e9, "memory.capacity"},
                                          {"bandwidth", "GB/s", 1e9, "memory.bandwidth"},
                                          {"flop_per_byte", "FLOP/B", 1, ""},
                                          {"tdp", "W", 1, "power.tdp"},
                                          {"scale_up", "up GB/s", 1e9, "scale_up.bandwidth"},
                                          {"scale_out", "out GB/s", 1e9, "scale_out.bandwidth"}};
  return all;
}

/// Three digits or so: "0.5", "62.5", "989", "2,250".
std::string cell(const Column& column, const std::optional<TableFigure>& figure) {
  if (!figure) return "-";
  if (column.key == "year") return (figure->estimated ? "~" : "") + print_number(figure->value);
  const double value = figure->value / column.unit;
  int decimals = 0;
  for (double shifted = value; shifted < 99.95 && shifted > 0 && decimals < 6; shifted *= 10)
    ++decimals;
  while (decimals > 0 && std::abs(value * std::pow(10, decimals - 1) -
                                  std::round(value * std::pow(10, decimals - 1))) < 1e-6)
    --decimals;
  return (figure->estimated ? "~" : "") + print_grouped(value, decimals);
}

std::string links_of(const PortConfig& port) {
  return port.present() ? fmt::format("{} x {}", print_number(port.links.value), port.kind) : "-";
}

std::string help_of(const AcceleratorConfig& a) {
  return fmt::format("{}, {}, {} {}, {}", a.name, a.architecture,
                     print(a.memory.capacity.published()), a.memory.kind,
                     print(a.memory.bandwidth.published()));
}

nlohmann::ordered_json to_json(const Listed& listed) {
  const AcceleratorConfig& a = listed.device;
  nlohmann::ordered_json row = {{"name", listed.id}, {"help", help_of(a)},
                                {"product", a.name}, {"architecture", a.architecture},
                                {"dies", a.dies},    {"memory", a.memory.kind}};
  nlohmann::ordered_json estimates = nlohmann::ordered_json::array();
  for (const Column& column : columns()) {
    const std::optional<TableFigure> figure = figure_of(a, column);
    row[column.key] = figure ? nlohmann::ordered_json(figure->value) : nullptr;
    if (figure && figure->estimated) estimates.push_back(column.key);
  }
  if (a.scale_up.present())
    row["links"] = {{"kind", a.scale_up.kind}, {"count", a.scale_up.links.value}};
  row["estimates"] = std::move(estimates);
  row["approximate"] = !a.approximations.empty();
  return row;
}

std::vector<Listed> all_of(const config::Library& library) {
  const std::string kind = "accelerators";
  std::vector<Listed> all;
  for (const std::string& name : library.names(kind))
    all.push_back(
        {name, config::load<AcceleratorConfig>(library.locate(kind, name, ""), library, kind)});
  return all;
}

/// The column that somebody means who calls it otherwise; empty: none.
std::string meant_column(const std::string& word) {
  static const std::map<std::string, std::string> columns_by_meaning = {
      {"fp4", "nvfp4"},
      {"fp32", "vector"},
      {"gb", "capacity"},
      {"hbm", "capacity"},
      {"intensity", "flop_per_byte"},
      {"memory", "capacity"},
      {"network", "scale_out"},
      {"nvlink", "scale_up"},
      {"power", "tdp"},
      {"vram", "capacity"},
      {"watt", "tdp"},
      {"watts", "tdp"}};
  const auto meant = columns_by_meaning.find(word);
  if (meant != columns_by_meaning.end()) return meant->second;
  return nearest_name(word, accelerator_columns());
}

void sort_by(const std::string& key, std::vector<Listed>& all) {
  if (key.empty() || key == "name") return;  // libraries list by name
  const auto column = std::ranges::find(columns(), key, &Column::key);
  if (column == columns().end()) {
    throw UsageError(fmt::format("unknown column '{}'{}\nthere are: {}", key,
                                 did_you_mean(meant_column(key)),
                                 comma_joined(accelerator_columns())));
  }
  const auto value = [&](const Listed& listed) {
    const std::optional<TableFigure> figure = figure_of(listed.device, *column);
    return figure ? figure->value : -1;
  };
  std::ranges::stable_sort(all,
                           [&](const Listed& a, const Listed& b) { return value(a) > value(b); });
}

}  // namespace

std::vector<std::string> accelerator_columns() {
  std::vector<std::string> names = {"name"};
  for (const Column& column : columns()) names.push_back(column.key);
  return names;
}

Answer accelerator_table(const config::Library& library, const std::string& sort) {
  std::vector<Listed> all = all_of(library);
  sort_by(sort, all);
  std::string titles = "accelerator";
  for (const Column& column : columns()) titles += " | >" + column.title;
  Table table = Table::titled(titles + " | memory | links | product");
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  for (const Listed& listed : all) {
    std::vector<std::string> cells = {listed.id};
    for (const Column& column : columns())
      cells.push_back(cell(column, figure_of(listed.device, column)));
    cells.push_back(listed.device.memory.kind);
    cells.push_back(links_of(listed.device.scale_up));
    cells.push_back(listed.device.name);
    table.add_row(std::move(cells));
    answer.json.push_back(to_json(listed));
  }
  answer.add(std::move(table));
  answer.add(
      "dense TFLOP/s by format (fp32: vector lanes), as published; ~: an estimate. GB/s one way\n");
  return answer;
}

}  // namespace orrery
