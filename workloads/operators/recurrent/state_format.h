// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"

namespace orrery {

/// Format of the states that recurrent layers keep from token to token.
enum class StateFormat : std::uint8_t { kFp32, kBf16 };

inline constexpr const char* kStateFormatHelp = "number format of the states";

inline double state_bytes(StateFormat format) { return format == StateFormat::kFp32 ? 4 : 2; }

template <>
struct config::EnumNames<StateFormat> {
  static constexpr std::pair<StateFormat, const char*> values[] = {{StateFormat::kFp32, "fp32"},
                                                                   {StateFormat::kBf16, "bf16"}};
};

}  // namespace orrery
