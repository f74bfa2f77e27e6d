// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/schema.h"

namespace orrery {

/// What an engine does by itself (auto), or as it is told.
enum class EngineSwitch : std::uint8_t { kAuto, kOn, kOff };

/// Kernels that an engine runs in the place of several, and launches that others hide.
struct EngineFusions {
  EngineSwitch router = EngineSwitch::kAuto;
  EngineSwitch allreduce_norm = EngineSwitch::kAuto;
  EngineSwitch pdl = EngineSwitch::kAuto;
  static const config::Schema<EngineFusions>& schema();

  /// The same, with what `own` says where nobody has said anything.
  EngineFusions resolved(const EngineFusions& own) const;
};

namespace config {

template <>
struct EnumNames<EngineSwitch> {
  static constexpr std::pair<EngineSwitch, const char*> values[] = {
      {EngineSwitch::kAuto, "auto"}, {EngineSwitch::kOn, "on"}, {EngineSwitch::kOff, "off"}};
};

}  // namespace config

}  // namespace orrery
