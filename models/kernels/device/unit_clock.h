// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/machine/accelerator_config.h"

namespace orrery {

/// Microseconds that a unit needs for what takes one of NVIDIA's multiprocessors 1,000 clocks:
/// those since Volta move 128 bytes a clock through their shared memory, a unit n times as wide
/// counts as n of them. Kernels that are bound by loads, conversions and exponentials rather than
/// by products go with that.
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

}  // namespace orrery
