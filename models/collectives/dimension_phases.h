// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "models/collectives/algorithm.h"
#include "models/topologies/dimension_config.h"

namespace orrery {

/// A collective of the ranks of every line of one dimension.
struct DimensionPhase {
  std::size_t dimension = 0;  ///< index in Collective::dimensions
  TransferKind kind = TransferKind::kAllReduce;
  double share = 1;  ///< buffer, as a share of that of the whole collective

  bool scatters() const { return kind != TransferKind::kAllGather; }
  bool gathers() const { return kind != TransferKind::kReduceScatter; }
};

/// The phases of a collective, in order. Of a buffer S over dimensions of n0, n1, n2 ranks:
///
///   reduce_scatter  dimension 0 with S, 1 with S/n0, 2 with S/(n0 n1)
///   all_gather      the same backwards
///   all_reduce      hierarchical: up to the last dimension but one, an all-reduce in the last, and
///                   back; each_dimension: an all-reduce of S in each
std::vector<DimensionPhase> dimension_phases(const Collective& collective);

/// Messages that a rank sends one after the other in a reduce-scatter along a line, or an
/// all-gather: n - 1 in a ring, 1 directly, log2 n by halving or doubling.
int line_steps(const DimensionConfig& dimension);
/// Links that these cross one after the other. On a ring partners of direct, halving and doubling
/// are several links apart: n/2 at most, and 1 + 2 + ... + n/2 of all steps.
int line_links(const DimensionConfig& dimension);
/// Bytes that the busiest link of a line carries, one way, while a rank scatters or gathers
/// `bytes`.
Bytes line_bytes(const DimensionConfig& dimension, Bytes bytes);

}  // namespace orrery
