// SPDX-License-Identifier: Apache-2.0
#include "workloads/parallelism/placement.h"

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>

namespace orrery {

Placement::Placement(std::vector<std::vector<int>> slices) : slices_(std::move(slices)) {
  std::size_t all = 0;
  for (const std::vector<int>& chunks : slices_) all += chunks.size();
  places_.assign(all, {-1, -1});
  for (std::size_t rank = 0; rank < slices_.size(); ++rank) {
    for (std::size_t chunk = 0; chunk < slices_[rank].size(); ++chunk) {
      const int slice = slices_[rank][chunk];
      if (slice < 0 || slice >= static_cast<int>(all) ||
          places_[static_cast<std::size_t>(slice)].rank >= 0) {
        throw std::invalid_argument("slice " + std::to_string(slice) + " of " +
                                    std::to_string(all) + " is placed twice or does not exist");
      }
      places_[static_cast<std::size_t>(slice)] = {static_cast<int>(rank), static_cast<int>(chunk)};
    }
  }
}

Placement Placement::round_robin(int ranks, int chunks) {
  std::vector<std::vector<int>> slices(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk)
      slices[static_cast<std::size_t>(rank)].push_back(chunk * ranks + rank);
  }
  return Placement(std::move(slices));
}

int Placement::slice(ChunkPlace place) const {
  return slices_.at(static_cast<std::size_t>(place.rank)).at(static_cast<std::size_t>(place.chunk));
}

ChunkPlace Placement::place(int slice) const { return places_.at(static_cast<std::size_t>(slice)); }

}  // namespace orrery
