// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sim/units/quantity.h"

namespace orrery {

using Seconds = Quantity<Dimension{.time = 1}>;
using Hertz = Quantity<Dimension{.time = -1}>;
using Bytes = Quantity<Dimension{.data = 1}>;
using Flops = Quantity<Dimension{.work = 1}>;
using Joules = Quantity<Dimension{.energy = 1}>;
using Dollars = Quantity<Dimension{.money = 1}>;
using CarbonMass = Quantity<Dimension{.carbon = 1}>;
using Watts = Quantity<Dimension{.time = -1, .energy = 1}>;
using BytesPerSecond = Quantity<Dimension{.time = -1, .data = 1}>;
using FlopsPerSecond = Quantity<Dimension{.time = -1, .work = 1}>;
using JoulesPerByte = Quantity<Dimension{.data = -1, .energy = 1}>;
using JoulesPerFlop = Quantity<Dimension{.work = -1, .energy = 1}>;
using DollarsPerSecond = Quantity<Dimension{.time = -1, .money = 1}>;
using CarbonIntensity = Quantity<Dimension{.energy = -1, .carbon = 1}>;

/// Literals for constants in code and tests: `3.35_TBps`, `80_GiB`, `600_ns`. GB is 10^9, GiB 2^30.
namespace literals {
// A type and a suffix cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses)
#define ORRERY_UNIT(suffix, Type, scale)                                                  \
  constexpr Type operator""_##suffix(long double v) { return Type(double(v) * (scale)); } \
  constexpr Type operator""_##suffix(unsigned long long v) { return Type(double(v) * (scale)); }

ORRERY_UNIT(s, Seconds, 1.0)
ORRERY_UNIT(ms, Seconds, 1e-3)
ORRERY_UNIT(us, Seconds, 1e-6)
ORRERY_UNIT(ns, Seconds, 1e-9)
ORRERY_UNIT(ps, Seconds, 1e-12)
ORRERY_UNIT(B, Bytes, 1.0)
ORRERY_UNIT(KB, Bytes, 1e3)
ORRERY_UNIT(MB, Bytes, 1e6)
ORRERY_UNIT(GB, Bytes, 1e9)
ORRERY_UNIT(TB, Bytes, 1e12)
ORRERY_UNIT(KiB, Bytes, 1024.0)
ORRERY_UNIT(MiB, Bytes, 1048576.0)
ORRERY_UNIT(GiB, Bytes, 1073741824.0)
ORRERY_UNIT(GBps, BytesPerSecond, 1e9)
ORRERY_UNIT(TBps, BytesPerSecond, 1e12)
ORRERY_UNIT(Gbitps, BytesPerSecond, 1e9 / 8)
ORRERY_UNIT(GFLOP, Flops, 1e9)
ORRERY_UNIT(TFLOP, Flops, 1e12)
ORRERY_UNIT(TFLOPps, FlopsPerSecond, 1e12)
ORRERY_UNIT(PFLOPps, FlopsPerSecond, 1e15)
ORRERY_UNIT(W, Watts, 1.0)
ORRERY_UNIT(kW, Watts, 1e3)
ORRERY_UNIT(J, Joules, 1.0)
ORRERY_UNIT(pJpB, JoulesPerByte, 1e-12)
ORRERY_UNIT(pJpFLOP, JoulesPerFlop, 1e-12)
ORRERY_UNIT(MHz, Hertz, 1e6)
ORRERY_UNIT(GHz, Hertz, 1e9)
#undef ORRERY_UNIT
// NOLINTEND(bugprone-macro-parentheses)
}  // namespace literals

}  // namespace orrery
