// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/store/sqlite.h"

namespace orrery {

/// SHA-256 of what a store says of a point beside its result, which has its own digest: what it is,
/// which configuration it rests on and what it has otherwise, what gave it. A byte of these rows
/// that was changed shows in it.
class Seal {
 public:
  explicit Seal(const Database& database);

  /// The seal of the rows as they are.
  std::string of(std::int64_t point);
  /// Whether it is the one that is written in the point's row, and the row is that of the identity,
  /// as a damaged index may not say.
  bool holds(std::int64_t point, std::string_view identity);
  /// Writes it into the point's row.
  void put(std::int64_t point);

 private:
  Statement point_, varied_, put_, row_;
};

}  // namespace orrery
