// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace orrery {

/// Where a function of one figure that has one valley is least between 0 and `most`, to a share of
/// `most`.
template <class Function>
double least_of(double most, double share, const Function& function) {
  constexpr double kGolden = 0.6180339887498949;
  double low = 0, high = most;
  double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
  double at_a = function(a), at_b = function(b);
  while (high - low > share * most) {
    if (at_a <= at_b) {
      high = std::exchange(b, a);
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = function(a);
    } else {
      low = std::exchange(a, b);
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = function(b);
    }
  }
  return (low + high) / 2;
}

}  // namespace orrery
