// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// Rows of numbers that a result may have beside its metrics: one for each request, or each moment.
struct ResultRows {
  std::string name;            ///< one of kRowTables
  std::vector<double> values;  ///< row by row; not a number: nothing
  bool operator==(const ResultRows&) const = default;
};

/// A kind of rows and what stands in each, in the order of the columns.
struct RowTableKind {
  std::string_view name;
  std::size_t width;
  std::array<std::string_view, 12> columns;
};

/// Tables of rows: those of the store, with `point` and `position` before the columns.
inline constexpr std::array<RowTableKind, 2> kRowTables = {{
    // Times of a request from the start of the run, in s: when it came, began, had its cache moved
    // to where its answer went on, got its first and its last token.
    {"requests",
     11,
     {"request", "instance", "prompt_tokens", "output_tokens", "found_tokens", "preemptions",
      "arrival_s", "started_s", "first_token_s", "moved_s", "last_token_s"}},
    // An instance at the end of some of its iterations.
    {"samples", 5, {"time_s", "instance", "waiting", "running", "kv_used_share"}},
}};

/// @throws std::out_of_range for a name that is none of theirs
const RowTableKind& row_table(std::string_view name);

}  // namespace orrery
