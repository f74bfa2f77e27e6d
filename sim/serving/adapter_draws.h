// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "sim/config/declared.h"

namespace orrery {

/// How often adapters are asked for.
enum class AdapterPopularity : std::uint8_t {
  kUniform,  ///< all as often
  kZipf      ///< the k-th as often as k to the power of -exponent
};

/// LoRA adapters that requests ask for. Draws have a sequence of their own: arrivals and lengths
/// stay as they are.
struct AdapterDraws {
  std::int64_t count = 1;
  AdapterPopularity popularity = AdapterPopularity::kUniform;
  double exponent = 1;
  std::int64_t seed = 0;
  static const config::Schema<AdapterDraws>& schema();
};

namespace config {

template <>
struct EnumNames<AdapterPopularity> {
  static constexpr std::pair<AdapterPopularity, const char*> values[] = {
      {AdapterPopularity::kUniform, "uniform"}, {AdapterPopularity::kZipf, "zipf"}};
};

}  // namespace config

}  // namespace orrery
