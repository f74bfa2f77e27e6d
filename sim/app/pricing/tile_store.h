// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/kernels/tile_model.h"
#include "sim/store/kept_rows.h"

namespace orrery {

/// Tile results of this process and of the runs before it, by their SHA-256.
class TileStore final : public TileMemo {
 public:
  TileStore() = default;
  explicit TileStore(const std::vector<TileRow>& known);

  std::optional<TileResult> find(const TileQuestion& question) override;
  void keep(const TileQuestion& question, const TileResult& result) override;

  /// What was played here and no store has: to be saved with the result that rests on it.
  const std::vector<TileRow>& played() const { return played_; }
  /// Rows of what was played since the last call.
  std::vector<TileRow> take_played() { return std::exchange(played_, {}); }

 private:
  std::map<std::string, TileResult> results_;  ///< results by key
  std::vector<TileRow> played_;
};

}  // namespace orrery
