// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "sim/config/load.h"
#include "sim/config/output.h"

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

/// A struct of the library, and its completed configuration.
template <class T>
struct Loaded {
  config::Node node;
  T object = {};
};
/// @param path of its file @param kind folder of the library that it is of
/// @throws config::ConfigError with everything that is wrong
template <class T>
Loaded<T> load_with_node(const std::string& path, const config::Library& library,
                         const std::string& kind) {
  config::Diagnostics diagnostics;
  const config::Node node = config::load_file(path, diagnostics, library, kind);
  diagnostics.throw_if_errors();
  const config::Record& record = T::schema().record();
  Loaded<T> loaded{config::complete(node, record, diagnostics, library)};
  config::fill(&loaded.object, loaded.node, record, diagnostics);
  diagnostics.throw_if_errors();
  return loaded;
}

}  // namespace orrery
