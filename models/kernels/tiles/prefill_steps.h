// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Rows of queries and columns of keys of a tile of attention over a prompt.
struct PrefillTile {
  double rows = 0, columns = 0;
};

/// Tiles of the attention kernels that NVIDIA ships: two warpgroups of 64 rows each on Hopper, two
/// tiles of 128 rows in tensor memory on Blackwell, columns as the shared memory holds them.
PrefillTile prefill_tile(const AcceleratorConfig& accelerator, std::int64_t dim, double bytes);

/// Steps of one tile.
struct PrefillTileSteps {
  double count = 0, cut = 0;  ///< all steps; those whose keys lie partly outside the window
};

/// Keys before those of the first query are as many steps more as they fill, parts of one included:
/// how they lie in the blocks of columns is not known of a prompt among others.
/// @param earlier keys before those of the first query
/// @param window 0: none
PrefillTileSteps prefill_tile_steps(double tile_index, double query, double earlier, double window,
                                    PrefillTile tile);

/// Steps of the tiles of one head.
struct PrefillSteps {
  double before = 0, most = 0;  ///< steps of all tiles but the last; of the longest of them
  double last = 0;              ///< steps of the last tile
  double masked_before = 0, masked_most = 0, masked_last = 0;  ///< steps that the window cuts
};

PrefillSteps prefill_steps(double query, double earlier, double window, PrefillTile tile);

}  // namespace orrery
