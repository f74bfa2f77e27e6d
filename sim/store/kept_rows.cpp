// SPDX-License-Identifier: Apache-2.0
#include "sim/store/kept_rows.h"

#include <fmt/core.h>

#include <bit>
#include <sstream>

#include "sim/results/identity.h"
#include "sim/results/version.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

/// Over what the row says, so that a damaged file cannot give another time.
std::string digest_of(const TileRow& row) {
  return sha256_hex(
      fmt::format("{}/{}/{}", row.key, std::bit_cast<std::uint64_t>(row.duration_us), row.events));
}

std::string digest_of(const std::string& key, const std::string& places) {
  return sha256_hex(key + "/" + places);
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
    if (digest_of(rows.back()) != select.text(9))
      database.refuse(StoreFault::kCorrupt,
                      "the tile result " + rows.back().key + " does not match its digest");
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

void insert_search(Database& database, const SearchRow& row) {
  Statement insert = database.prepare(
      "INSERT OR IGNORE INTO searches (key, sweep, seed, begun_from, digest) VALUES (?, ?, ?, ?, "
      "?)");
  std::string places;  // "12 40 7"
  for (const std::uint64_t place : row.begun_from)
    places += fmt::format("{}{}", places.empty() ? "" : " ", place);
  insert.run_with(row.key, row.sweep, row.seed, places, digest_of(row.key, places));
}

std::vector<SearchRow> read_searches(const Database& database) {
  std::vector<SearchRow> rows;
  Statement select =
      database.prepare("SELECT key, sweep, seed, begun_from, digest FROM searches ORDER BY key");
  while (select.step()) {
    rows.push_back({select.text(0), select.text(1), select.integer(2), {}});
    const std::string places = select.text(3);
    if (digest_of(rows.back().key, places) != select.text(4))
      database.refuse(
          StoreFault::kCorrupt,
          fmt::format("the beginning of the search {} does not match its digest", rows.back().key));
    std::istringstream numbers(places);
    for (std::uint64_t place = 0; numbers >> place;) rows.back().begun_from.push_back(place);
  }
  return rows;
}

}  // namespace orrery
