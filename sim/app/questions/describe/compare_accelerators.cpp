// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/compare_accelerators.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "sim/app/questions/describe/derived_figures.h"
#include "sim/config/output.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {
namespace {

struct Row {
  std::string path;
  std::vector<std::string> cells;             // by device; empty: it has none
  std::vector<std::optional<double>> values;  // in base units
};

/// Sentences, which do not stand in columns of values.
bool is_text(const std::string& path) {
  return is_remark(path) || (path.size() > 7 && path.ends_with(".source"));
}

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
      if (is_text(leaf.path)) continue;
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
