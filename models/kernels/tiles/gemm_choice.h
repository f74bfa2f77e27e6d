// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/kernels/device/tile_menu.h"
#include "models/kernels/tiles/matrix_product.h"

namespace orrery {

/// What all ways to run one product share; reciprocals, because candidates are where the time goes.
struct GemmJob {
  MatrixProduct product;
  TileDevice device;
  Streaming streaming;
  double most_splits = 1;
  double matrix = 0;           ///< us of a FLOP on one unit
  double per_unit = 0;         ///< 1 / units
  double load = 0, crowd = 0;  ///< us of a byte into one unit alone, and for each active unit
  double step = 0;             ///< us that an element of the summed dimension takes at least
  double depth = 0;            ///< elements of the summed dimension, in whole steps
  double split = 0;            ///< us of adding up splits
  double split_traffic = 0;    ///< us of the partial sums of one split in the L2
};

/// @throws config::ConfigError as tile_device() and matrix_product()
GemmJob gemm_job(const Kernel& kernel, const AcceleratorConfig& accelerator, GemmValues v);

/// A way to run a product.
struct GemmCandidate {
  Tile tile;
  double tiles = 0;     ///< tiles of all splits together
  double depth = 0;     ///< elements of the summed dimension that a tile takes
  double waves = 0;     ///< waves of tiles on the units
  double matrix = 0;    ///< us of the matrix instructions for an element of depth
  double load = 0;      ///< us of the loads for an element of depth
  double loop = 0;      ///< us of a main loop
  double exposed = 0;   ///< us of the main loop in which a unit waits for loads
  double epilogue = 0;  ///< us of writing out the results of a tile
  double steady = 0;    ///< us of a tile between others on its unit
  double split = 0;     ///< us of adding up the splits
  double time = 0;      ///< us of the product, without the launch
};

/// What the library may choose from, and what it is taken to choose: the fastest, or now and then
/// one that is not much slower.
struct GemmChoice {
  GemmCandidate best;
  double expected = 0;  ///< us expected
};

/// Bytes that a tile loads for an element of depth.
double tile_bytes(const MatrixProduct& product, Tile tile);

GemmChoice choose_tiles(const GemmJob& job, const TileMenu& menu, GemmValues v);

/// us of a step of the main loop whose parts take a, b and c: their p-norm, p = overlap.step.
double joined_step(double a, double b, double c, const ProductOverlap& overlap);

}  // namespace orrery
