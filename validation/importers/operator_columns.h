// SPDX-License-Identifier: Apache-2.0
// The columns of each kind of operator table.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validation/importers/operator_table.h"

namespace orrery {

/// A column by its name in a file, and the member of a row that its cells go to.
template <class Value>
struct OperatorColumn {
  const char* name;
  Value OperatorRow::*member;
};
using CountColumn = OperatorColumn<std::int64_t>;
using TextColumn = OperatorColumn<std::string>;
using ShareColumn = OperatorColumn<double>;

/// Says why the cells of a row do not fit together, or nothing; sets the members that follow.
using RowFault = std::string (*)(OperatorRow& row);

/// The columns of a kind. Optional ones are read where they stand.
struct KindColumns {
  const char* name;  ///< name of the kind, see to_string()
  std::vector<TextColumn> texts;
  std::vector<CountColumn> counts;
  std::vector<CountColumn> optional = {};
  std::vector<ShareColumn> shares = {};
  bool precision = true;               ///< whether there is a column of that name; else bf16
  const char* latency = "latency_us";  ///< column of the measured time
  RowFault fault = nullptr;
  std::vector<TextColumn> optional_texts = {};
};

/// The columns that tables of a kind have, but for those of engines below.
const KindColumns& columns_of(OperatorTableKind kind);

/// Recurrent kernels in tables of engines: of delta networks, whose heads of values share a key, or
/// of Mamba-2, whose heads share B and C.
KindColumns engine_recurrences(bool delta);

}  // namespace orrery
