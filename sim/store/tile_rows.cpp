// SPDX-License-Identifier: Apache-2.0
#include "sim/store/tile_rows.h"

#include <cstring>

#include "sim/results/identity.h"
#include "sim/results/version.h"

namespace orrery {
namespace {

/// Over what the row says, so that a damaged file cannot give another time.
std::string digest_of(const TileRow& row) {
  std::uint64_t bits = 0;
  static_assert(sizeof bits == sizeof row.duration_us);
  std::memcpy(&bits, &row.duration_us, sizeof bits);
  return sha256_hex(row.key + "/" + std::to_string(bits) + "/" + std::to_string(row.events));
}

}  // namespace

void insert_tiles(Database& database, const std::vector<TileRow>& rows) {
  if (rows.empty()) return;
  Statement insert = database.prepare(
      "INSERT OR IGNORE INTO tiles (key, device, kernel, precision, shape, units, memory, "
      "duration_us, events, engine_version, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const TileRow& row : rows)
    insert.run_with(row.key, row.device, row.kernel, row.precision, row.shape, row.units,
                    row.memory, row.duration_us, row.events, kEngineVersion, digest_of(row));
}

std::vector<TileRow> read_tiles(const Database& database) {
  std::vector<TileRow> rows;
  Statement select = database.prepare(
      "SELECT key, device, kernel, precision, shape, units, memory, duration_us, events, digest "
      "FROM tiles WHERE engine_version = ? ORDER BY key");
  select.bind(1, kEngineVersion);
  while (select.step()) {
    rows.push_back({select.text(0), select.text(1), select.text(2), select.text(3), select.text(4),
                    select.real(5), select.real(6), select.real(7), select.integer(8)});
    if (digest_of(rows.back()) != select.text(9)) {
      database.refuse(StoreFault::kCorrupt,
                      "the tile result " + rows.back().key + " does not match its digest");
    }
  }
  return rows;
}

void add(ByteWriter& bytes, const std::vector<TileRow>& rows) {
  bytes.add(std::uint64_t{rows.size()});
  for (const TileRow& row : rows) {
    for (const std::string* text : {&row.key, &row.device, &row.kernel, &row.precision, &row.shape})
      bytes.add(*text);
    for (const double number : {row.units, row.memory, row.duration_us}) bytes.add(number);
    bytes.add(static_cast<std::uint64_t>(row.events));
  }
}

std::vector<TileRow> read_tiles(ByteReader& bytes) {
  std::vector<TileRow> rows(bytes.number());
  for (TileRow& row : rows) {
    for (std::string* text : {&row.key, &row.device, &row.kernel, &row.precision, &row.shape})
      *text = bytes.text();
    for (double* number : {&row.units, &row.memory, &row.duration_us}) *number = bytes.real();
    row.events = static_cast<std::int64_t>(bytes.number());
  }
  return rows;
}

}  // namespace orrery
