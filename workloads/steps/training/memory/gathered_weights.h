// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "workloads/steps/training/memory/caching_allocator.h"
#include "workloads/steps/training/pieces.h"

namespace orrery {

/// Bytes of the matrices of some parameters, `element` each; vectors are next to nothing.
std::vector<std::int64_t> matrix_bytes(const RankParameters& parameters, double element);

/// Weights of sharded units (zero 3) in the memory of a rank of a stage, as passes gather and drop
/// them. Each unit is gathered into a buffer of a stream of its own and, if the software does so,
/// copied from there (PyTorch FSDP: all_gather_stream).
class GatheredWeights {
 public:
  /// @param allocator, model, config, pieces outlive it
  GatheredWeights(CachingAllocator& allocator, const LlmConfig& model, const TrainingConfig& config,
                  const Pieces& pieces, int stage);

  /// Before a piece of a pass.
  void gather(const std::vector<Piece>& pieces, std::size_t at);
  /// Behind it.
  void leave(const Piece& piece);
  void end_pass();
  void end_step();

 private:
  using Handles = CachingAllocator::Handles;

  bool stays(const Piece& layer) const;
  double bytes_of(const Piece& piece) const;
  void gather_root(const std::vector<Piece>& pieces);
  void gather_end(const Piece& piece);
  Handles copies(const Piece& piece);

  CachingAllocator& allocator_;
  const LlmConfig& model_;
  const TrainingConfig& config_;
  const Pieces& pieces_;
  int stage_;
  bool gathers_;                            ///< weights are sharded
  Handles weights_, ahead_;                 ///< gathered layer, and the buffer of the next one
  std::map<int, Handles> ends_;             ///< weights of ends, by kind of piece
  std::map<std::int64_t, Handles> layers_;  ///< weights that stay gathered
};

}  // namespace orrery
