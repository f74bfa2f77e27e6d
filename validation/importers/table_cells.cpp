// SPDX-License-Identifier: Apache-2.0
#include "validation/importers/table_cells.h"

#include "sim/units/spelling.h"
#include "validation/importers/numbers.h"

namespace orrery {
namespace {

std::string column_of(const config::CsvReader& reader, std::size_t cell) {
  return "'" + reader.columns()[cell] + "'";
}

}  // namespace

std::vector<std::size_t> require_columns(config::CsvReader& reader,
                                         const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  for (const std::string& name : names) {
    const auto place = reader.find(name);
    if (!place) {
      const std::string meant = nearest_name(name, reader.columns());
      reader.error(0, "there is no column '" + name + "'" +
                          (meant.empty() ? "" : "; is it '" + meant + "'?"));
    }
    places.push_back(place.value_or(0));
  }
  reader.throw_if_errors();
  return places;
}

std::int64_t read_count(config::CsvReader& reader, std::size_t cell) {
  const auto count = parse_count(reader.cell(cell));
  if (count) return *count;
  reader.error(cell, column_of(reader, cell) + " is a whole number from 0 on, not '" +
                         std::string(reader.cell(cell)) + "'");
  return 0;
}

double read_latency(config::CsvReader& reader, std::size_t cell) {
  const auto latency = parse_real(reader.cell(cell));
  if (latency && *latency > 0) return *latency;
  reader.error(cell, column_of(reader, cell) + " is a finite number above 0, not '" +
                         std::string(reader.cell(cell)) + "'");
  return 0;
}

double read_share(config::CsvReader& reader, std::size_t cell) {
  const auto share = parse_real(reader.cell(cell));
  if (share && *share >= 0 && *share <= 1) return *share;
  reader.error(cell, column_of(reader, cell) + " is a number from 0 to 1, not '" +
                         std::string(reader.cell(cell)) + "'");
  return 0;
}

std::string read_name(config::CsvReader& reader, std::size_t cell) {
  if (reader.cell(cell).empty()) reader.error(cell, column_of(reader, cell) + " is empty");
  return std::string(reader.cell(cell));
}

}  // namespace orrery
