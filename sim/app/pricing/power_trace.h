// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/replay/replay.h"
#include "sim/units/units.h"

namespace orrery {

/// What one rank of each role draws above idle over time, and the most that any window of it
/// averages when all of it is repeated without end.
///
/// Energies go into bins of a 200th of the window, evenly over the time that they were used in. A
/// window is charged all bins that it touches: what is returned is never below the truth, and at
/// most a 100th of the window's bins above it.
class PowerTrace final : public UseObserver {
 public:
  /// @param kernels energy of a run on one rank, by kernel
  /// @param transfers energy of a transfer on one of its ranks, by transfer
  PowerTrace(std::vector<Joules> kernels, std::vector<Joules> transfers, std::size_t roles,
             Seconds window);

  void kernel_ran(std::uint32_t role, KernelId kernel, Picoseconds begin, Picoseconds end) override;
  void transfer_ran(std::uint32_t role, TransferId transfer, Picoseconds begin,
                    Picoseconds end) override;

  /// Power of the role that draws the most; the run lasts until `end` and then starts anew.
  Watts highest(Picoseconds end) const;

 private:
  void add(std::uint32_t role, Joules energy, Picoseconds begin, Picoseconds end);
  std::size_t bin_at(Picoseconds time) const;
  void widen();
  double most_in(const std::vector<double>& bins, Picoseconds end, Picoseconds window) const;

  std::vector<Joules> kernels_, transfers_;
  std::vector<std::vector<double>> bins_;  ///< J, by role
  Picoseconds window_;
  Picoseconds most_bins_;  ///< bins of a role at most
  Picoseconds width_;      ///< width of a bin in ps
  double per_width_;       ///< 1 / width_
};

/// The most energy that highest() would find in a window, of a run of `period`, repeated, that uses
/// `energy` evenly over `busy` of it without a break. All times in picoseconds.
double even_window_energy(double energy, double busy, double period, double window);

}  // namespace orrery
