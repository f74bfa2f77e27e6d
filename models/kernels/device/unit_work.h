// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/graph/kernel.h"
#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Microseconds that a unit needs for 1,000 clocks of work of an NVIDIA multiprocessor. Since Volta
/// a multiprocessor moves 128 bytes a clock through its shared memory; a unit that moves n times as
/// many needs 1/n of the clocks. Loads, conversions and exponentials scale so, products do not.
double unit_kclk_us(const AcceleratorConfig& accelerator);

/// Exponentials that a unit does in a microsecond where attention was fitted: 16 a clock on every
/// NVIDIA GPU from Volta to Blackwell (CUDA C++ Programming Guide, arithmetic instructions).
double fitted_exponentials_us(const AcceleratorConfig& accelerator);

/// Exponentials of a unit and clock on one device over those on another (compute.special, at the
/// boost clock). Where there is no rate of its own they are sequences of some eight multiply-adds
/// on the vector lanes.
double exponentials_over(const AcceleratorConfig& a, const AcceleratorConfig& b);

/// Products of attention take this much longer than at the peak, however fast the exponentials: as
/// fitted for 16-bit prefill on H100 and H200.
inline constexpr double kLeastProducts = 1.06;

/// What the vector lanes of a die take for a kernel at their peak, in microseconds; exponentials
/// run beside the other instructions where there are units for them.
double vector_us(const Kernel& kernel, const AcceleratorConfig& accelerator);

/// Whether a kernel is a recurrence on vector lanes: `batch` thread blocks of k threads, each over
/// m tokens one after the other, with n elements of a state for each thread.
bool is_recurrence(const Kernel& kernel);

/// What a recurrence takes on a die, in microseconds, launch and bytes apart: each multiply-add of
/// a thread takes an operand of 4 bytes from the unit's shared memory, which gives 128 bytes a
/// clock (NVIDIA Hopper tuning guide; AMD's LDS gives as much). That is what bounds many blocks: 8
/// sequences of 4,096 tokens with 64 heads on an A800 take 7.4 ms by it, and 9.2 and 7.1 ms in
/// BlinkDL/RWKV-CUDA pull request 14, before and after wider loads. A block alone waits for its
/// operands at every token, while others of the unit may run.
/// @param vector us of the device's vector lanes for it
double recurrence_us(const Kernel& kernel, const AcceleratorConfig& accelerator, double vector);

/// What a product's narrow weights take to become operands, at the peaks of vector lanes and units
/// for special functions; 0 where they are as wide as those.
struct Widening {
  double us = 0;
  bool apart = false;  ///< nothing is multiplied meanwhile
};

/// Weights are widened once for each block of rows that goes through the units. Where products of
/// several rows run in the lanes, a block of weights is widened between two barriers and multiplied
/// between the next two.
Widening widening_of(const Kernel& kernel, const AcceleratorConfig& accelerator);

}  // namespace orrery
