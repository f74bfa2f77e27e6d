// SPDX-License-Identifier: Apache-2.0
#include "sim/store/row_groups.h"

#include <fmt/core.h>

#include <optional>
#include <stdexcept>
#include <utility>

#include "sim/results/record_bytes.h"
#include "sim/store/record_reader.h"
#include "sim/units/sha256.h"

namespace orrery {
namespace {

std::string digest_of(std::int64_t number, const std::string& content) {
  return sha256_hex(std::to_string(number) + " " + content);
}

[[noreturn]] void throw_damaged(const Database& database, std::int64_t number) {
  database.refuse(
      StoreFault::kCorrupt,
      fmt::format("the columns of points {} to {} are damaged; `orrery sweep gc STORE --yes` makes "
                  "them again from the results",
                  number * kPointsOfGroup, (number + 1) * kPointsOfGroup - 1));
}

std::string bytes_of(const RowGroup& group) {
  ByteWriter bytes;
  const PointList& list = group.list;
  bytes.add(std::uint64_t{list.groups.size()});
  for (const PointKind& kind : list.groups) {
    for (const std::string* text : {&kind.status, &kind.experiment, &kind.engine_version})
      bytes.add(*text);
    bytes.add(static_cast<std::uint64_t>(kind.base));
  }
  std::vector<std::uint16_t> places, kinds;
  for (std::size_t i = 0; i < list.points.size(); ++i) {
    places.push_back(static_cast<std::uint16_t>(list.points[i] - group.range().first));
    kinds.push_back(static_cast<std::uint16_t>(list.group_of[i]));
  }
  for (const auto* array : {&places, &kinds}) bytes.add_array(*array);
  bytes.add(std::uint64_t{group.digests.size()});
  for (const auto& [name, digest] : group.digests) {
    bytes.add(name);
    bytes.add(digest);
  }
  return bytes.bytes();
}

RowGroup group_of(std::int64_t number, const std::string& content) {
  RowGroup group{number, {}, {}};
  PointList& list = group.list;
  ByteReader bytes(content);
  list.groups.resize(bytes.number());
  for (PointKind& kind : list.groups) {
    for (std::string* text : {&kind.status, &kind.experiment, &kind.engine_version})
      *text = bytes.text();
    kind.base = static_cast<std::int64_t>(bytes.number());
  }
  for (const std::uint16_t place : bytes.array<std::uint16_t>())
    list.points.push_back(group.range().first + place);
  for (const std::uint16_t kind : bytes.array<std::uint16_t>()) list.group_of.push_back(kind);
  for (std::uint64_t columns = bytes.number(); columns > 0; --columns) {
    std::string name = bytes.text();
    group.digests.emplace(std::move(name), bytes.text());
  }
  return group;
}

/// Whether the checksums of all those points hold.
bool are_whole(Database& database, const std::vector<std::int64_t>& points) {
  RecordReader reader(database);
  Statement identity = database.prepare("SELECT identity FROM points WHERE point = ?");
  try {
    for (const std::int64_t point : points) {
      identity.bind(1, point);
      if (!identity.step() || !reader.find(identity.text(0))) return false;
      identity.reset();
    }
  } catch (const StoreError& error) {
    if (error.fault() != StoreFault::kCorrupt) throw;
    return false;
  }
  return true;
}

bool has_values(const PointColumn& column, std::size_t rows) {
  for (std::size_t row = 0; row < rows; ++row)
    if (column.has(row)) return true;
  return false;
}

void insert_columns(Database& database, RowGroup& group) {
  const std::size_t rows = group.list.points.size();
  const auto sources = sources_of(database, group.range(), group.list.groups);
  std::vector<ColumnBuilder> columns;
  columns.reserve(sources.size());
  std::vector<ColumnRead> reads;
  reads.reserve(sources.size());
  for (const ColumnSource& source : sources) {
    const auto kind = source.words ? PointColumn::Kind::kWord : PointColumn::Kind::kNumber;
    columns.emplace_back(PointColumn::empty(kind, "", rows));
    reads.push_back({source, &columns.back()});
  }
  read_rows(database, group.range(), group.list.points, reads, 0);
  Statement insert =
      database.prepare("INSERT INTO column_chunks (row_group, name, content) VALUES (?, ?, ?)");
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (!has_values(columns[i].column(), rows)) continue;
    const std::string content = to_bytes(columns[i].column());
    group.digests.emplace(sources[i].name(), sha256_hex(content));
    insert.bind(1, group.number).bind(2, sources[i].name()).bind_bytes(3, content);
    insert.run();
  }
}

/// @return whether there is such a group now
bool add_row_group(Database& database, std::int64_t number) {
  RowGroup group{number, {}, {}};
  group.list = read_points(database, group.range());
  if (!are_whole(database, group.list.points)) return false;
  // First, because columns refer to it.
  Statement insert =
      database.prepare("INSERT INTO row_groups (row_group, content, digest) VALUES (?, x'', '')");
  insert.bind(1, number).run();
  insert_columns(database, group);
  const std::string content = bytes_of(group);
  Statement update =
      database.prepare("UPDATE row_groups SET content = ?, digest = ? WHERE row_group = ?");
  update.bind_bytes(1, content).bind(2, digest_of(number, content)).bind(3, number).run();
  return true;
}

/// The column of a group as it was written, or nothing.
std::optional<std::string> whole_column(Statement& select, const RowGroup& group,
                                        const std::string& name, const std::string& digest) {
  select.bind(1, group.number).bind(2, name);
  std::optional<std::string> content;
  if (select.step()) content = select.bytes(0);
  select.reset();
  if (content && sha256_hex(*content) != digest) content.reset();
  return content;
}

constexpr const char* kSelectColumn =
    "SELECT content FROM column_chunks WHERE row_group = ? AND name = ?";

}  // namespace

std::vector<RowGroup> read_row_groups(const Database& database) {
  std::vector<RowGroup> groups;
  Statement select =
      database.prepare("SELECT row_group, content, digest FROM row_groups ORDER BY row_group");
  while (select.step()) {
    const std::string content = select.bytes(1);
    if (digest_of(select.integer(0), content) != select.text(2))
      throw_damaged(database, select.integer(0));
    groups.push_back(group_of(select.integer(0), content));
  }
  return groups;
}

void read_columns(const Database& database, const RowGroup& group,
                  const std::vector<ColumnRead>& reads, std::size_t first) {
  Statement select = database.prepare(kSelectColumn);
  for (const ColumnRead& read : reads) {
    const std::string name = read.source.name();
    const auto digest = group.digests.find(name);
    if (digest == group.digests.end()) continue;
    const auto content = whole_column(select, group, name, digest->second);
    if (!content) throw_damaged(database, group.number);
    from_bytes(*content, first, group.list.points.size(), *read.into);
  }
}

std::vector<std::string> varied_axes(const RowGroup& group) {
  std::vector<std::string> axes;
  for (const auto& [name, digest] : group.digests) {
    const std::string_view begin = "varied/", end = "/text";
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    axes.push_back(name.substr(begin.size(), name.size() - begin.size() - end.size()));
  }
  return axes;
}

std::int64_t next_row_group(const Database& database) {
  return database.integer("SELECT coalesce(max(row_group) + 1, 0) FROM row_groups");
}

std::int64_t add_row_groups(Database& database, std::int64_t from, std::int64_t most) {
  const std::int64_t end =
      (database.integer("SELECT coalesce(max(point), 0) FROM points") + 1) / kPointsOfGroup;
  Statement there = database.prepare("SELECT 1 FROM row_groups WHERE row_group = ?");
  std::int64_t number = from;
  for (; number < end && most > 0; ++number) {
    there.bind(1, number);
    const bool known = there.step();
    there.reset();
    if (!known && add_row_group(database, number)) --most;
  }
  return number;
}

void drop_damaged_row_groups(Database& database) {
  std::vector<std::int64_t> damaged;
  Statement groups = database.prepare("SELECT row_group, content, digest FROM row_groups");
  Statement columns = database.prepare(kSelectColumn);
  while (groups.step()) {
    const std::int64_t number = groups.integer(0);
    const std::string content = groups.bytes(1);
    bool whole = digest_of(number, content) == groups.text(2);
    if (whole) {
      const RowGroup group = group_of(number, content);
      for (const auto& [name, digest] : group.digests)
        whole = whole && whole_column(columns, group, name, digest).has_value();
    }
    if (!whole) damaged.push_back(number);
  }
  Statement drop = database.prepare("DELETE FROM row_groups WHERE row_group = ?");
  for (const std::int64_t number : damaged) drop.bind(1, number).run();
}

}  // namespace orrery
