// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/app/pricing/machine.h"
#include "sim/config/declared.h"
#include "sim/graph/costs.h"
#include "sim/machine/precision_names.h"
#include "sim/machine/transfer_names.h"
#include "workloads/layers/work/enum_names.h"

namespace orrery {

/// What of the links a result has: their classes, or each link that carried something as well.
enum class Recorded : std::uint8_t { kClasses, kLinks };

inline constexpr const char* kFidelityHelp =
    "detail of the kernel model: closed form, tile (thread blocks as discrete events: products, "
    "experts, attention and latent attention; others in closed form), or auto, whichever predicts "
    "a kernel better";

/// Whether ranks that do the same are replayed as one.
enum class Folding : std::uint8_t { kAuto, kOff };

}  // namespace orrery

namespace orrery::config {

template <>
struct EnumNames<Recorded> {
  static constexpr std::pair<Recorded, const char*> values[] = {{Recorded::kClasses, "classes"},
                                                                {Recorded::kLinks, "links"}};
};

template <>
struct EnumNames<Folding> {
  static constexpr std::pair<Folding, const char*> values[] = {{Folding::kAuto, "auto"},
                                                               {Folding::kOff, "off"}};
};

template <>
struct EnumNames<Unused> {
  static constexpr std::pair<Unused, const char*> values[] = {{Unused::kIdle, "idle"},
                                                              {Unused::kAbsent, "absent"}};
};

template <>
struct EnumNames<ExpertRouting::Router> {
  static constexpr std::pair<ExpertRouting::Router, const char*> values[] = {
      {ExpertRouting::Router::kUniform, "uniform"}, {ExpertRouting::Router::kPerfect, "perfect"}};
};

template <>
struct EnumNames<ExpertRouting::Mode> {
  static constexpr std::pair<ExpertRouting::Mode, const char*> values[] = {
      {ExpertRouting::Mode::kNormal, "normal"}, {ExpertRouting::Mode::kLowLatency, "low_latency"}};
};

template <>
struct EnumNames<Fidelity> {
  static constexpr std::pair<Fidelity, const char*> values[] = {
      {Fidelity::kAuto, "auto"}, {Fidelity::kClosed, "closed"}, {Fidelity::kTile, "tile"}};
};

}  // namespace orrery::config
