// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace orrery {

/// Lower triangle L of the covariance C = L L^T; a pivot that rounding made negative is 0.
std::vector<std::vector<double>> cholesky(const std::vector<std::vector<double>>& c);

}  // namespace orrery
