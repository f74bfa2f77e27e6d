// SPDX-License-Identifier: Apache-2.0
#include "models/kernels/cholesky.h"

#include <algorithm>
#include <cmath>

namespace orrery {

std::vector<std::vector<double>> cholesky(const std::vector<std::vector<double>>& c) {
  std::vector<std::vector<double>> l(c.size(), std::vector<double>(c.size()));
  for (std::size_t i = 0; i < c.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double rest = c[i][j];
      for (std::size_t k = 0; k < j; ++k) rest -= l[i][k] * l[j][k];
      if (i == j) {
        l[i][j] = std::sqrt(std::max(0.0, rest));
      } else {
        l[i][j] = l[j][j] > 0 ? rest / l[j][j] : 0;
      }
    }
  }
  return l;
}

}  // namespace orrery
