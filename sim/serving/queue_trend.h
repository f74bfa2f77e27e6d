// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "sim/serving/serving_log.h"

namespace orrery {

/// Whether a service keeps up with its arrivals.
enum class LoadState : std::uint8_t {
  kStable,     ///< the queue returns to where it began, or its growth does not matter
  kSaturated,  ///< the queue grows by more than 2 % of the arrivals
  kUndecided   ///< too few arrivals to tell
};

/// How the queue develops while requests arrive. A request waits from its arrival until an
/// iteration takes it.
struct QueueTrend {
  double slope = 0;      ///< requests per s, by least squares
  double mean = 0;       ///< requests that wait
  Picoseconds from = 0;  ///< warm-up before it is left out of slope and mean
  /// When the growth begins: a level until then and a line from there on fit best.
  Picoseconds since = 0;
  LoadState load = LoadState::kStable;
  double deciding = 0;  ///< requests that would decide; 0: it is decided
};

/// Slope and mean come from a line through means of 20 stretches of equal length, after a tenth
/// that is cut. The load is judged over all arrivals from a quarter of their time on:
///
/// - stable: in the second half as few wait at some time as waited in the mean of the first quarter
///   (queues of M/M/k return within few relaxation times), or at most 2 % of the arrivals are added
///   to the queue with 95 % confidence;
/// - saturated: otherwise, if more than 2 % of the arrivals are added, and more than none with 95 %
///   confidence;
/// - undecided: otherwise, or if requests arrive for less than three mean lifetimes.
QueueTrend queue_trend(const std::vector<ServedRequest>& served);

}  // namespace orrery
