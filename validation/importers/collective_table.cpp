// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/collective_table.h"

#include "sim/config/packed_file.h"
#include "validation/importers/table_cells.h"

namespace orrery {

const char* to_string(CollectiveTableKind kind) {
  return kind == CollectiveTableKind::kNccl ? "collective_nccl" : "all_reduce_custom";
}

CollectiveTable read_collective_table(const std::string& path) {
  config::CsvReader reader(path, read_input(path));
  CollectiveTable table;
  table.path = path;
  table.header = reader.row();
  const auto collective = reader.find("collective");
  table.kind = collective ? CollectiveTableKind::kNccl : CollectiveTableKind::kAllReduceCustom;
  const std::vector<std::size_t> places =
      require_columns(reader, {"system", "precision", "ranks", "bytes", "latency_us", "source"});
  while (reader.next()) {
    CollectiveRow& row = table.rows.emplace_back();
    row.line = static_cast<std::size_t>(reader.line());
    row.system = read_name(reader, places[0]);
    row.collective = collective ? read_name(reader, *collective) : "all_reduce";
    row.precision = read_name(reader, places[1]);
    row.ranks = read_count(reader, places[2]);
    row.bytes = read_count(reader, places[3]);
    row.latency_us = read_latency(reader, places[4]);
    row.source = reader.cell(places[5]);
    row.text = reader.row();
  }
  reader.throw_if_errors();
  return table;
}

}  // namespace orrery
