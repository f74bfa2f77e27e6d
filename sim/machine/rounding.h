// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace orrery {

/// Data sheets round all figures of a product: by how much they may differ and still be the same.
inline constexpr double kSheetRounding = 0.03;

}  // namespace orrery
