// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <string>
#include <type_traits>

#include "sim/app/questions/describe/system_figures.h"
#include "sim/config/fact.h"
#include "sim/units/text.h"

namespace orrery {

/// A number in SI base units.
template <class T>
double base_of(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else {
    return value.base();
  }
}

/// What is published of a fact or what simulations use, in SI base units.
template <class T>
double seen(const Fact<T>& fact, View view) {
  return base_of(view == View::kPublished ? fact.published() : fact.value);
}

template <class T>
std::string fact_value_text(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return print_number(static_cast<double>(value));
  } else {
    return print(value);
  }
}

/// What a driver reports is whole MiB, and long in decimal units.
inline std::string fact_value_text(Bytes value) {
  const double mebibytes = value.base() / 1048576;
  const bool whole = mebibytes == std::floor(mebibytes);
  const bool decimal = std::fmod(value.base(), 1e6) == 0;
  return whole && !decimal ? print_number(mebibytes) + " MiB" : print(value);
}

/// A fact behind a figure; `key` is where a configuration has it.
template <class T>
Input input_of(const std::string& key, const Fact<T>& fact) {
  const std::string& source = fact.nameplate ? fact.nameplate_source : fact.source;
  return {.key = key,
          .published = fact_value_text(fact.published()),
          .simulated = fact_value_text(fact.value),
          .published_source = source,
          .simulated_source = fact.source,
          .reason = fact.reason,
          .differs = fact.nameplate && base_of(*fact.nameplate) != base_of(fact.value),
          .estimated = source.rfind("estimate", 0) == 0};
}

}  // namespace orrery
