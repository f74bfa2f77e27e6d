// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sim/graph/costs.h"
#include "sim/graph/program.h"
#include "sim/machine/kernel_model.h"
#include "sim/machine/network.h"

namespace orrery {

/// A program with the price of everything in it.
struct PricedProgram {
  Costs costs;
  std::vector<PricedTransfer> transfers;
};
PricedProgram price(const Program& program, const AcceleratorConfig& accelerator,
                    const KernelModel& model, const Network& network);

/// The cost of a kernel that runs behind others in a step, at the rate of its software. It has the
/// latency of every launch that the kernel stands for; work before it may hide a part of the first.
KernelCost in_step(const Kernel& kernel, const AcceleratorConfig& accelerator,
                   const KernelCost& alone);

/// So many times as much of every transfer, latencies included.
void scale_transfers(double factor, PricedProgram& priced);

/// What a step uses above idle, by where it goes; all ranks together.
struct EnergyUse {
  Joules idle;    ///< the floor of every package in use (PowerConfig::floor), as long as the run
  Joules busy;    ///< units that run or wait (PowerConfig::busy)
  Joules matrix;  ///< matrix operations without `shared`
  Joules vector;
  Joules memory;
  Joules cache;   ///< bytes that the last cache gives beyond what comes from the memory
  Joules shared;  ///< operands of matrix instructions, which EnergyConfig::matrix has in it
  Joules scale_up;
  Joules scale_out;

  Joules total() const {
    return idle + busy + matrix + vector + memory + cache + shared + scale_up + scale_out;
  }
  /// What the accelerators draw for as long as they are held, whatever their work takes.
  Joules held() const { return idle + busy; }
  /// Energy of the work of units and caches, which follows the square of their voltage.
  Joules core() const { return matrix + vector + cache + shared; }
};

/// The floor of every package in use over the whole step, plus the power of its units while kernels
/// run on them, energy per FLOP by precision and per byte by memory level and link. A byte from the
/// memory pays its whole way once; tiles that read it again pay the way from the last cache. Units
/// and caches take the square of the voltage at the clock of their kernel (KernelCost::clock), over
/// that which the energies hold at. Traffic between the dies of a package is not charged.
EnergyUse step_energy(const Program& program, const PricedProgram& priced,
                      const AcceleratorConfig& accelerator, Seconds step);

/// Above the floor: one run of a kernel on one rank, at the voltage that energies hold at; `busy`
/// at the clock and over the duration of `cost`. A kernel whose time is fixed uses no more than the
/// cap allows in that time.
EnergyUse run_energy(const Kernel& kernel, const KernelCost& cost,
                     const AcceleratorConfig& accelerator);

/// One transfer, all its groups together.
EnergyUse transfer_energy(const PricedTransfer& transfer, const AcceleratorConfig& accelerator);

/// Energy of each transfer, on one of its ranks.
std::vector<Joules> transfer_energies(const Program& program, const PricedProgram& priced,
                                      const AcceleratorConfig& accelerator);

/// What kernels use above idle that run one after the other on one rank.
EnergyUse kernel_energy(const std::vector<Kernel>& kernels, const std::vector<KernelCost>& costs,
                        const AcceleratorConfig& accelerator);

/// Bytes that matrix instructions read from the shared memory: rows and columns of each instruction
/// for every step of its depth (CoreConfig::matrix_tile). 0 where units have none.
Bytes shared_reads(const Kernel& kernel, const AcceleratorConfig& accelerator);

}  // namespace orrery
