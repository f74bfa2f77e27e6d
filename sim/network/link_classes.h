// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/graph/costs.h"

namespace orrery {

/// A class without links: nothing loads the link.
inline constexpr std::uint32_t kUnloaded = ~std::uint32_t{0};

/// Loads by link: ascending, each link once, without zeros.
/// @throws std::logic_error for an unknown link, or a load that is negative or not finite.
LinkLoads normalized_loads(const LinkLoads& loads, std::size_t links);

/// Groups links that every transfer loads alike; the class of each link, numbered by their first
/// links. A rack of 72 equal accelerators has a few classes where it has hundreds of links.
std::vector<std::uint32_t> link_classes(const Costs& costs);

}  // namespace orrery
