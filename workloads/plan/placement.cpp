// SPDX-License-Identifier: Apache-2.0
#include "workloads/plan/placement.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace orrery {

Placement::Placement(std::vector<std::vector<int>> slices, int copies)
    : slices_(std::move(slices)), places_(static_cast<std::size_t>(copies)) {
  std::size_t all = 0;
  for (const std::vector<int>& chunks : slices_) all += chunks.size();
  all /= places_.size();
  for (std::vector<ChunkPlace>& places : places_) places.assign(all, {-1, -1});
  for (std::size_t rank = 0; rank < slices_.size(); ++rank) {
    for (std::size_t chunk = 0; chunk < slices_[rank].size(); ++chunk) {
      const int slice = slices_[rank][chunk];
      const ChunkPlace place{static_cast<int>(rank), static_cast<int>(chunk)};
      std::vector<ChunkPlace>& places = places_.at(static_cast<std::size_t>(copy_of(place)));
      if (slice < 0 || slice >= static_cast<int>(all) ||
          places[static_cast<std::size_t>(slice)].rank >= 0) {
        throw std::invalid_argument(
            fmt::format("slice {} of {} is placed twice or does not exist", slice, all));
      }
      places[static_cast<std::size_t>(slice)] = place;
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

Placement Placement::folded(int ranks) {
  std::vector<std::vector<int>> slices;
  slices.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) slices.push_back({rank, 2 * ranks - 1 - rank});
  return Placement(std::move(slices));
}

Placement Placement::mirrored(int ranks) {
  std::vector<std::vector<int>> slices;
  slices.reserve(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) slices.push_back({rank, ranks - 1 - rank});
  return Placement(std::move(slices), 2);
}

int Placement::slice(ChunkPlace place) const {
  return slices_.at(static_cast<std::size_t>(place.rank)).at(static_cast<std::size_t>(place.chunk));
}

ChunkPlace Placement::place(int slice, int copy) const {
  return places_.at(static_cast<std::size_t>(copy)).at(static_cast<std::size_t>(slice));
}

std::optional<ChunkPlace> Placement::neighbour(ChunkPlace place, int distance) const {
  const int other = slice(place) + distance;
  if (other < 0 || other >= slices()) return std::nullopt;
  return this->place(other, copy_of(place));
}

bool Placement::holds(int rank, int slice) const {
  const std::vector<int>& held = slices_.at(static_cast<std::size_t>(rank));
  return std::ranges::find(held, slice) != held.end();
}

bool Placement::goes_both_ways() const {
  if (slices_.front().empty()) return false;
  return slices_ != round_robin(ranks(), static_cast<int>(slices_.front().size())).slices_;
}

std::vector<int> Placement::twins(int rank) const {
  std::vector<int> twins;
  twins.reserve(static_cast<std::size_t>(copies()));
  for (int copy = 0; copy < copies(); ++copy) twins.push_back(place(slice({rank, 0}), copy).rank);
  std::ranges::sort(twins);
  return twins;
}

}  // namespace orrery
