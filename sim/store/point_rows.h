// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/store/point_column.h"
#include "sim/store/sqlite.h"

namespace orrery {

/// Points of a store with numbers from `first` to `last` - 1, as rows of its tables have them.
struct PointSpan {
  std::int64_t first = 0, last = 0;
};

/// Points in their order, each of one of some groups.
struct PointList {
  std::vector<std::int64_t> points;
  std::vector<PointKind> groups;
  std::vector<std::uint32_t> group_of;  ///< place in `groups`, by point
};

/// @throws StoreError (kCorrupt) where they are not in their order
PointList read_points(const Database& database, PointSpan range);

/// A source and the column that gets its values.
struct ColumnRead {
  ColumnSource source;
  ColumnBuilder* into = nullptr;
};

/// Reads values of points into rows `first` and following of columns. Sources of one table and key
/// are read in one pass.
void read_rows(const Database& database, PointSpan range, const std::vector<std::int64_t>& points,
               const std::vector<ColumnRead>& reads, std::size_t first);

/// What points of a range have otherwise than their bases.
std::vector<std::string> varied_axes(const Database& database, PointSpan range);

/// Every source that points of a range may have values in.
std::vector<ColumnSource> sources_of(const Database& database, PointSpan range,
                                     const std::vector<PointKind>& groups);

/// The text of a metric's or label's column: whether it holds words.
bool is_word_type(const std::string& type);

}  // namespace orrery
