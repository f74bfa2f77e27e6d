// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/config/declared.h"

namespace orrery {

/// Sizes that batches are filled up to: behind those of the row before, multiples of `step`.
struct SizeStep {
  std::int64_t to = 0;  ///< largest tokens of this row; 0: no limit
  std::int64_t step = 1;
  static const config::Schema<SizeStep>& schema();
};

/// The next size for so many tokens; of rows that end below them, the tokens themselves.
std::int64_t next_size(const std::vector<SizeStep>& steps, std::int64_t tokens);

/// Whether rows ascend, with the one without a limit last.
bool ascends(const std::vector<SizeStep>& steps);

inline constexpr const char* kSizeStepsMustAscend =
    "rows must ascend; one without `to` is the last";

}  // namespace orrery
