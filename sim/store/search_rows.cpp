// SPDX-License-Identifier: Apache-2.0
#include "sim/store/search_rows.h"

#include <sstream>

#include "sim/units/sha256.h"

namespace orrery {
namespace {

/// "12 40 7"
std::string text_of(const std::vector<std::uint64_t>& places) {
  std::string text;
  for (const std::uint64_t place : places) {
    if (!text.empty()) text += ' ';
    text += std::to_string(place);
  }
  return text;
}

std::string digest_of(const std::string& key, const std::string& places) {
  return sha256_hex(key + "/" + places);
}

}  // namespace

void insert_search(Database& database, const SearchRow& row) {
  Statement insert = database.prepare(
      "INSERT OR IGNORE INTO searches (key, sweep, seed, begun_from, digest) VALUES (?, ?, ?, ?, "
      "?)");
  const std::string places = text_of(row.begun_from);
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
      database.refuse(StoreFault::kCorrupt, "the beginning of the search " + rows.back().key +
                                                " does not match its digest");
    std::istringstream numbers(places);
    for (std::uint64_t place = 0; numbers >> place;) rows.back().begun_from.push_back(place);
  }
  return rows;
}

}  // namespace orrery
