// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/results/run_record.h"

namespace orrery {

/// A part of the time of two results, in whole picoseconds, so that sums are exact.
struct AttributedPart {
  std::string name;
  std::int64_t a_ps = 0;
  std::int64_t b_ps = 0;
  std::int64_t difference_ps() const { return b_ps - a_ps; }
};

/// Where the difference of a time comes from: parts that add up to the total in A, in B and in the
/// difference, to the picosecond.
struct Attribution {
  std::string what;  ///< "part of the step", "class of operators"
  AttributedPart total;
  std::vector<AttributedPart> parts;  ///< the largest difference first; the last makes up the rest
};

/// The time of two results by the parts of its breakdown, and by class of operators on the rank
/// that ends last, less what of them overlaps. Only those that both results have.
std::vector<Attribution> attributions(const RunRecord& a, const RunRecord& b);

}  // namespace orrery
