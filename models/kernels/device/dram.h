// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// What streams lose of the peak of a DRAM, as the parameters of the roofline (roofline.h).
struct DramEfficiency {
  double read = 1;        ///< share of the peak that reads alone reach
  double write_cost = 0;  ///< what a written byte takes longer than one read
  double turnaround = 0;  ///< extra time of each byte of the smaller direction

  /// Share of the peak of a stream with `reads` of its bytes read and the others written.
  double stream(double reads) const;
};

/// From the organisation of the memory and the timings of its standard; nothing where its kind is
/// no DRAM with known timings, or its organisation is not given.
///  - Refresh: `memory.refresh` is tRFC / tREFI of all banks at once. Per-bank refresh, tRFCpb,
///  takes
///    200 of 350 ns (JESD238); this share is lost, the rest is hidden behind other banks.
///  - Turnarounds: the data bus idles tWTR + tCL from writes to reads and two clocks back, each
///  time
///    that a controller has drained a queue of 64 bursts of one direction.
///  - Writes themselves take as long as reads: tWR is hidden behind other banks.
std::optional<DramEfficiency> dram_efficiency(const MemoryConfig& memory);

/// Share of the peak that is useful where pieces of `bytes` are read at random, each aligned to its
/// size and within one row: 64 bytes are fetched for a smaller piece, and each piece opens a row,
/// of which tFAW allows four. Many requests in flight, no bank conflicts: an upper bound. Nothing
/// as above.
std::optional<double> random_read_efficiency(const MemoryConfig& memory, Bytes bytes);

}  // namespace orrery
