// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validation/importers/log_text.h"

namespace orrery {

/// Where the columns of a table of nccl-tests stand among the cells of a row. A position of 0 is
/// that of the size: such a column is not there.
struct NcclColumns {
  struct Half {
    std::size_t time = 0, algorithm = 0, bus = 0, wrong = 0;
  };
  std::size_t count = 0;  ///< cells of a row; 0: there was no header yet
  std::size_t type = 0, redop = 0, root = 0;
  std::vector<Half> halves;  ///< out of place, in place
  /// The last column of a half is the largest deviation of a value (versions before 2.12), not a
  /// number of wrong values.
  bool deviations = false;

  /// @param words of the line "# size count type ...", "#" the first
  /// @return nothing where a column lacks that is read
  static std::optional<NcclColumns> from_header(const std::vector<LogWord>& words);
};

/// Cells of a row, or the first ones of a row that was cut.
struct NcclCells {
  std::vector<LogWord> cells;       ///< empty: there is none in the line
  std::optional<LogWord> misfit{};  ///< the word that is no cell and ended them
};

/// The row of a table in a line. Logs of libraries have their lines anywhere: before a row, after
/// it, or between its parts, so that the row may begin at any word.
NcclCells find_nccl_row(const std::vector<LogWord>& words, const NcclColumns& columns);

/// Adds the cells of a line that goes on with a row which was cut. Rows are printed in three parts:
/// up to the root, out of place, in place.
/// @return whether the line has at least one further part
bool continue_nccl_row(std::vector<LogWord>& cells, const std::vector<LogWord>& words,
                       const NcclColumns& columns);

/// The precision of a type that nccl-tests and rccl-tests name; nothing for unknown ones.
std::optional<std::string_view> nccl_precision(std::string_view type);

/// Whether a result is wrong: as #wrong counts, by the asterisk of older versions, or beyond the
/// deviation that those allow for the type (DeltaMaxValue in their src/common.cu).
/// @return nothing where the cell is neither a number nor N/A
std::optional<bool> is_wrong_result(std::string_view cell, std::string_view type, bool deviation);

}  // namespace orrery
