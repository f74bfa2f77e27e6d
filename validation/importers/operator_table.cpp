// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/operator_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "sim/config/byte_source.h"
#include "sim/config/csv.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"
#include "validation/importers/operator_columns.h"

namespace orrery {
namespace {

/// The columns of those names, in their order; the missing ones are errors of the header.
/// @throws config::ConfigError when there are missing ones
std::vector<std::size_t> require_columns(config::CsvReader& reader,
                                         const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  std::vector<std::string> others = reader.columns();
  std::erase_if(others, [&](const std::string& column) {
    return std::ranges::find(names, column) != names.end();
  });
  for (const std::string& name : names) {
    const auto place = reader.find(name);
    if (!place) {
      const std::string meant = nearest_name(name, others);
      reader.error(0, "there is no column '" + name + "'" +
                          (meant.empty() ? "" : "; is it '" + meant + "'?"));
    }
    places.push_back(place.value_or(0));
  }
  reader.throw_if_errors();
  return places;
}

/// Says that a cell of the current record is not as expected. @return 0, its value from then on
int refuse(config::CsvReader& reader, std::size_t cell, const char* expected) {
  reader.error(cell, fmt::format("'{}' is {}, not '{}'", reader.columns()[cell], expected,
                                 reader.cell(cell)));
  return 0;
}

std::int64_t read_count(config::CsvReader& reader, std::size_t cell) {
  const auto count = parse_count(reader.cell(cell));
  return count ? *count : refuse(reader, cell, "a whole number from 0 on");
}

double read_latency(config::CsvReader& reader, std::size_t cell) {
  const auto latency = parse_real(reader.cell(cell));
  return latency && *latency > 0 ? *latency : refuse(reader, cell, "a finite number above 0");
}

double read_share(config::CsvReader& reader, std::size_t cell) {
  const auto share = parse_real(reader.cell(cell));
  return share && *share >= 0 && *share <= 1 ? *share
                                             : refuse(reader, cell, "a number from 0 to 1");
}

std::string read_name(config::CsvReader& reader, std::size_t cell) {
  if (reader.cell(cell).empty()) reader.error(cell, "'" + reader.columns()[cell] + "' is empty");
  return std::string(reader.cell(cell));
}

/// The columns that a table of a kind has.
KindColumns columns_in(config::CsvReader& reader, OperatorTableKind kind) {
  const auto has = [&reader](const char* column) { return reader.find(column).has_value(); };
  const bool of_engines = kind == OperatorTableKind::kRecurrent && !has("state_precision");
  return of_engines ? engine_recurrences(!has("d_state")) : columns_of(kind);
}

/// Told by the columns that no other kind has; MLA has one latent head of keys and values, and so
/// no column of their number.
OperatorTableKind kind_of(config::CsvReader& reader) {
  const auto has = [&reader](const char* column) { return reader.find(column).has_value(); };
  if (has("experts")) return OperatorTableKind::kMoe;
  if (has("state_precision") || has("d_conv")) return OperatorTableKind::kRecurrent;
  if (has("chosen")) return OperatorTableKind::kSelection;
  if (has("gemm_precision") && has("operation")) return OperatorTableKind::kSparseParts;
  if (has("gemm_precision"))
    return has("q_len") ? OperatorTableKind::kBlockPrefill : OperatorTableKind::kBlockDecode;
  const bool of_mla = !has("kv_heads");
  if (has("q_len"))
    return of_mla ? OperatorTableKind::kMlaPrefill : OperatorTableKind::kAttentionPrefill;
  if (has("kv_len"))
    return of_mla ? OperatorTableKind::kMlaDecode : OperatorTableKind::kAttentionDecode;
  if (has("us_per_kernel")) return OperatorTableKind::kLaunch;
  if (has("written_bytes")) return OperatorTableKind::kRowKernels;
  if (has("read_share")) return OperatorTableKind::kHbmStream;
  if (!has("m")) {
    reader.error(
        0,
        "these are not the columns of an operator table: one of experts (moe), q_len "
        "(prefill), kv_len (decode), m (gemm), written_bytes (row_kernels), read_share "
        "(hbm_stream), us_per_kernel (launch), state_precision or d_conv "
        "(recurrent_kernels), chosen (index_selection) or gemm_precision (blocks) must be there");
    reader.throw_if_errors();
  }
  return OperatorTableKind::kGemm;
}

/// Position of `name` in `names`, at the end if it is new. The last rows' name is the likeliest.
template <class Name>
std::uint32_t index_of(std::vector<Name>& names, const Name& name) {
  const auto found = std::find(names.rbegin(), names.rend(), name);
  if (found != names.rend()) return static_cast<std::uint32_t>(names.rend() - found - 1);
  names.push_back(name);
  return static_cast<std::uint32_t>(names.size() - 1);
}

/// Where the columns of a kind stand in a file: system, latency, precision where it has one, those
/// of texts, counts and shares.
std::vector<std::size_t> find_places(config::CsvReader& reader, const KindColumns& columns) {
  std::vector<std::string> names = {"system", columns.latency};
  if (columns.precision) names.emplace_back("precision");
  for (const TextColumn& column : columns.texts) names.emplace_back(column.name);
  for (const CountColumn& column : columns.counts) names.emplace_back(column.name);
  for (const ShareColumn& column : columns.shares) names.emplace_back(column.name);
  return require_columns(reader, names);
}

std::vector<std::size_t> columns_asked(config::CsvReader& reader,
                                       const std::vector<RowCondition>& where) {
  std::vector<std::string> names;
  names.reserve(where.size());
  for (const RowCondition& condition : where) names.push_back(condition.column);
  return require_columns(reader, names);
}

bool meets(const config::CsvReader& reader, const std::vector<std::size_t>& columns,
           const std::vector<RowCondition>& where) {
  for (std::size_t i = 0; i < where.size(); ++i)
    if (std::ranges::find(where[i].values, reader.cell(columns[i])) == where[i].values.end())
      return false;
  return true;
}

/// The cell of a column; empty where the file has none of that name.
std::string cell_of(config::CsvReader& reader, const char* column) {
  const auto place = reader.find(column);
  return place ? std::string(reader.cell(*place)) : "";
}

MeasuredEngine engine_of(config::CsvReader& reader) {
  return {cell_of(reader, "framework"), cell_of(reader, "version")};
}

OperatorRow read_row(config::CsvReader& reader, const KindColumns& columns,
                     const std::vector<std::size_t>& places, OperatorTable& table) {
  OperatorRow row;
  row.line = static_cast<std::size_t>(reader.line());
  row.system = index_of(table.systems, read_name(reader, places[0]));
  row.source = index_of(table.sources, cell_of(reader, "source"));
  row.engine = index_of(table.engines, engine_of(reader));
  auto place = places.begin() + 2;
  row.precision = columns.precision ? read_name(reader, *place++) : "bf16";
  for (const TextColumn& column : columns.texts) row.*column.member = read_name(reader, *place++);
  for (const CountColumn& column : columns.counts)
    row.*column.member = read_count(reader, *place++);
  for (const ShareColumn& column : columns.shares)
    row.*column.member = read_share(reader, *place++);
  for (const CountColumn& column : columns.optional)
    if (const auto there = reader.find(column.name))
      row.*column.member = read_count(reader, *there);
  for (const TextColumn& column : columns.optional_texts)
    row.*column.member = cell_of(reader, column.name);
  row.latency_us = read_latency(reader, places[1]);
  const std::string fault = columns.fault == nullptr ? "" : columns.fault(row);
  if (!fault.empty()) reader.error(0, fault);
  row.text = reader.row();
  return row;
}

}  // namespace

const char* to_string(OperatorTableKind kind) { return columns_of(kind).name; }

std::vector<RowCondition> row_conditions(const std::vector<std::string>& texts) {
  std::vector<RowCondition> conditions;
  for (const std::string& text : texts) {
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0)
      throw config::ConfigError(
          fmt::format("'{}' is no condition on a column; write it as version=0.24.0", text));
    const std::string all = text.substr(sign + 1);
    RowCondition& condition = conditions.emplace_back(RowCondition{text.substr(0, sign), {}});
    for (const std::string_view value : comma_separated(all)) condition.values.emplace_back(value);
    if (all.empty() || all.front() == ',') condition.values.emplace_back();  // an empty cell
  }
  return conditions;
}

OperatorTable read_operator_table(const std::string& path, const std::vector<RowCondition>& where) {
  config::CsvReader reader(path, read_input(path));
  OperatorTable table;
  table.path = path;
  table.header = reader.row();
  table.kind = kind_of(reader);
  const KindColumns columns = columns_in(reader, table.kind);
  const std::vector<std::size_t> places = find_places(reader, columns);
  const std::vector<std::size_t> asked = columns_asked(reader, where);
  while (reader.next())
    if (meets(reader, asked, where)) table.rows.push_back(read_row(reader, columns, places, table));
  reader.throw_if_errors();
  return table;
}

const char* to_string(CollectiveTableKind kind) {
  return kind == CollectiveTableKind::kNccl ? "collective_nccl" : "all_reduce_custom";
}

CollectiveTable read_collective_table(const std::string& path,
                                      const std::vector<RowCondition>& where) {
  config::CsvReader reader(path, read_input(path));
  CollectiveTable table;
  table.path = path;
  table.header = reader.row();
  const auto collective = reader.find("collective");
  table.kind = collective ? CollectiveTableKind::kNccl : CollectiveTableKind::kAllReduceCustom;
  const std::vector<std::size_t> places =
      require_columns(reader, {"system", "precision", "ranks", "bytes", "latency_us", "source"});
  const std::vector<std::size_t> asked = columns_asked(reader, where);
  while (reader.next()) {
    if (!meets(reader, asked, where)) continue;
    CollectiveRow& row = table.rows.emplace_back();
    row.line = static_cast<std::size_t>(reader.line());
    row.system = read_name(reader, places[0]);
    row.collective = collective ? read_name(reader, *collective) : "all_reduce";
    row.precision = read_name(reader, places[1]);
    row.ranks = read_count(reader, places[2]);
    row.bytes = read_count(reader, places[3]);
    row.latency_us = read_latency(reader, places[4]);
    row.source = reader.cell(places[5]);
    row.engine = engine_of(reader);
    row.kernel = cell_of(reader, "kernel");
    row.text = reader.row();
  }
  reader.throw_if_errors();
  return table;
}

}  // namespace orrery
