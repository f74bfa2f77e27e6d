// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// The results of a product that one thread block makes: rows of tokens, columns of features.
struct Tile {
  double rows = 0, columns = 0;
};

/// Elements that the tiles of a product load from the next level, the L2, into shared memory.
struct TileTraffic {
  double inputs = 0, weights = 0;
};

/// Every tile reads its rows and its columns over the whole sum: m n k / columns of the inputs,
/// m n k / rows of the weights, where tiles divide the product. Tiles of one element are the naive
/// product, 2 m n k (Lam, Rothberg and Wolf, ASPLOS 1991). Tiles at the edge read no more than
/// there is.
TileTraffic tile_traffic(double m, double n, double k, Tile tile);

inline constexpr double kResultBytes = 4;  ///< bytes of a result until it is written

/// What a core has for tiles, in bytes; no limit where it is not known.
struct TileRoom {
  double shared = INFINITY, results = INFINITY;
  bool together = false;  ///< results lie in the shared memory too
  const char* place = "registers for results";
};
TileRoom tile_room(const AcceleratorConfig& accelerator);

/// Bytes of one element of each operand, as a kernel keeps them in shared memory.
struct OperandBytes {
  double input = 2, weight = 2;
};

/// Whether weights are stored narrower than the operands that a product computes with.
bool is_widened(const Kernel& kernel);

/// Elements of the sum that one pipeline stage holds: 128 bytes of the operands that are computed
/// with, the widest swizzled row of shared memory (PTX ISA); 64 elements of 16 bits.
double stage_depth(Precision precision);

/// Tiles to choose from.
class TileMenu {
 public:
  static constexpr std::size_t kMost = 16;

  const Tile* begin() const { return tiles_.data(); }
  const Tile* end() const { return tiles_.data() + count_; }
  void add(Tile tile) { tiles_[count_++] = tile; }

 private:
  std::array<Tile, kMost> tiles_{};
  std::size_t count_ = 0;
};

/// The tiles of matrix libraries that the accelerator's core holds: two pipeline stages of operands
/// in its shared memory, and results of 32 bits in its own memory for them, or in half of its
/// registers (operands, addresses and other warps have the rest), or beside the operands. All of
/// them where nothing is known of the core. Kernels that widen their weights have tiles of few rows
/// and many columns besides (Frantar et al., MARLIN, arXiv 2408.11743: 16 x 256). A kernel that
/// asks for a tile gets that one.
/// @throws config::ConfigError with the arithmetic when the core does not hold it, or holds none.
TileMenu tile_menu(const Kernel& kernel, const AcceleratorConfig& accelerator, OperandBytes bytes);

}  // namespace orrery
