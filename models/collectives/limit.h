// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/collectives/algorithm.h"

namespace orrery {

/// What leaves a part of a machine at most, one way, at line rate. Dies of a package may share its
/// ports, so packages are the smallest parts.
struct PortRates {
  BytesPerSecond die;              ///< bytes/s of a die, to the others of its package
  BytesPerSecond package_inside;   ///< bytes/s of a package, to others of its system
  BytesPerSecond package_outside;  ///< bytes/s of a package, between systems
  BytesPerSecond system;           ///< bytes/s of a system, between systems
};
PortRates port_rates(const SystemConfig& system);

/// The least time of a collective, whatever the algorithm: the bytes that must leave or enter every
/// package and every system, over what their ports carry. Of a buffer S and parts of p of n ranks,
/// N parts in all:
///
///   all_reduce                    2(N-1)/N S; S where switches reduce
///   all_gather, reduce_scatter    (n-p)/n S
///   all_to_all                    p (n-p)/n S; the heaviest sum where parts differ in size
///   broadcast, reduce             S
///   gather, scatter               (n-p)/n S, of the root's part
///   dispatch, combine             one copy of each token to each other part that needs it
///
/// (Thakur et al., IJHPCA 2005; an all_reduce adds N-1 times and spreads N-1 times, each chunk
/// crossing that many borders.)
Seconds least_time(const Collective& collective, const PortRates& ports);

}  // namespace orrery
