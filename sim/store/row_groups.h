// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/store/point_columns.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// Points of a row group: numbers `number * kPointsOfGroup` and following. While fewer than so many
/// have come, questions read them one by one, in some 60 us each.
inline constexpr std::int64_t kPointsOfGroup = 1024;

/// Points once more, by columns, as questions about many of them read them: of a million the two
/// columns of a front are 16 MB, their rows 900. Each column has a checksum, which the group has,
/// and the group its own: what is read from here is what was written.
struct RowGroup {
  std::int64_t number = 0;
  PointList list;
  std::map<std::string, std::string> digests;  ///< SHA-256 of the columns' bytes, by name

  PointSpan range() const { return {number * kPointsOfGroup, (number + 1) * kPointsOfGroup}; }
};

/// The groups of a store, by number.
/// @throws StoreError (kCorrupt) where one is not as it was written
std::vector<RowGroup> read_row_groups(const Database& database);

/// Values of a group into rows `first` and following of columns.
/// @throws StoreError (kCorrupt) where a column is not as it was written
void read_columns(const Database& database, const RowGroup& group,
                  const std::vector<ColumnRead>& reads, std::size_t first);

/// Makes groups of the points that are in none, within the caller's transaction. Points whose
/// checksums do not hold are left out with their neighbours: questions find them and say so.
/// @param from number of the first group to be made
/// @param most number of groups that are made at most
/// @return number of the group that is next
std::int64_t add_row_groups(Database& database, std::int64_t from, std::int64_t most);

/// What points of a group have otherwise than their bases.
std::vector<std::string> varied_axes(const RowGroup& group);

/// The number after the last group that there is.
std::int64_t next_row_group(const Database& database);

/// Drops groups that are not as they were written, so that they are made again.
void drop_damaged_row_groups(Database& database);

}  // namespace orrery
