// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

namespace orrery {

/// A chunk of layers of one pipeline rank.
struct ChunkPlace {
  int rank = 0;
  int chunk = 0;
  bool operator==(const ChunkPlace&) const = default;
};

/// Which slice of the model each chunk of each pipeline rank holds. Slices are numbered as
/// activations pass through them: the first has the embedding, the last the head. All of them may
/// be there several times: then the chunks of one number are a copy of the model, through which
/// other micro-batches go.
class Placement {
 public:
  /// @param slices by rank and chunk; each of 0 .. n-1 once, or once in each chunk of `copies`
  /// @throws std::invalid_argument where one is missing or there twice
  explicit Placement(std::vector<std::vector<int>> slices, int copies = 1);
  /// Chunk c of rank r holds slice c * ranks + r.
  static Placement round_robin(int ranks, int chunks);
  /// Two chunks that lie as a V: slices r and 2 * ranks - 1 - r.
  static Placement folded(int ranks);
  /// Two copies in opposite directions: slices r and ranks - 1 - r.
  static Placement mirrored(int ranks);

  int ranks() const { return static_cast<int>(slices_.size()); }
  int slices() const { return static_cast<int>(places_.front().size()); }
  int copies() const { return static_cast<int>(places_.size()); }
  int slice(ChunkPlace place) const;
  ChunkPlace place(int slice, int copy = 0) const;
  /// The place of the slice `distance` behind that of `place` in the same copy, if there is one.
  std::optional<ChunkPlace> neighbour(ChunkPlace place, int distance) const;
  bool holds(int rank, int slice) const;
  /// Whether activations go to higher and to lower ranks: not where slices are dealt out in turn.
  bool goes_both_ways() const;
  /// Ranks that hold the same slices as `rank`, ascending; itself alone without copies.
  std::vector<int> twins(int rank) const;

 private:
  int copy_of(ChunkPlace place) const { return copies() > 1 ? place.chunk : 0; }

  std::vector<std::vector<int>> slices_;
  std::vector<std::vector<ChunkPlace>> places_;  ///< places by copy and slice
};

}  // namespace orrery
