// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/config/schema.h"

namespace orrery {

/// A Fact of any type in numbers and words: what is published, and what simulations use.
struct SeenFact {
  std::string key;              ///< key of a configuration: "accelerator.memory.capacity"
  double published, simulated;  ///< values in SI base units
  std::string published_text, simulated_text;
  std::string published_source, simulated_source;
  std::string reason;  ///< why simulations do not use the published value

  bool differs() const { return published != simulated; }
  bool estimated() const { return published_source.starts_with("estimate"); }
};

/// The Fact under a key of a struct; none where the struct has none there.
std::optional<SeenFact> fact_at(const void* object, const config::Record& record,
                                const std::string& key);
template <class T>
std::optional<SeenFact> fact_at(const T& object, const std::string& key) {
  return fact_at(&object, T::schema().record(), key);
}

}  // namespace orrery
