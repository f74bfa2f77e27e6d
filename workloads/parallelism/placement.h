// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace orrery {

/// A chunk of layers of one pipeline rank.
struct ChunkPlace {
  int rank = 0;
  int chunk = 0;
  bool operator==(const ChunkPlace&) const = default;
};

/// Which slice of the model each chunk of each pipeline rank holds. Slices are numbered as
/// activations pass through them: the first has the embedding, the last the head.
class Placement {
 public:
  /// @param slices by rank and chunk; each of 0 .. n-1 once
  /// @throws std::invalid_argument where one is missing or there twice
  explicit Placement(std::vector<std::vector<int>> slices);
  /// Chunk c of rank r holds slice c * ranks + r.
  static Placement round_robin(int ranks, int chunks);

  int ranks() const { return static_cast<int>(slices_.size()); }
  int slices() const { return static_cast<int>(places_.size()); }
  int slice(ChunkPlace place) const;
  ChunkPlace place(int slice) const;

 private:
  std::vector<std::vector<int>> slices_;
  std::vector<ChunkPlace> places_;
};

}  // namespace orrery
