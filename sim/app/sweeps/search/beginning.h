// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/app/sweeps/search/search.h"
#include "sim/store/result_store.h"

namespace orrery {

/// Places that a search begins with, the best of those that the store has results of: a half of the
/// population at most. They are chosen when it begins and kept in the store, so that it goes the
/// same way when it is resumed. Plans of more than a million places begin with none.
/// @param sweep the plan at the last fidelity @throws StoreError
std::vector<std::uint64_t> beginning_of(const Sweep& sweep, const SearchConfig& config,
                                        ResultStore& store);

}  // namespace orrery
