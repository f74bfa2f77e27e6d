// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace orrery {

/// Hears of each row that is done, and of how many there are.
using RowDone = std::function<void(std::size_t rows, const std::string& id)>;

}  // namespace orrery
