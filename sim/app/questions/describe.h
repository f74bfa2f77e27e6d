// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/config/library.h"
#include "sim/config/schema.h"

namespace orrery {

/// One thing that can be described.
struct CatalogEntry {
  std::string name;
  std::string help;                                ///< one line
  std::function<std::string()> details = nullptr;  ///< more than that line; none: the line is all
};

/// A struct whose keys can be described.
struct KeySource {
  std::string file;  ///< what its files are called: "experiment"
  std::string help;  ///< of such a file
  std::string kind;  ///< which of several kinds of such files it is: "training"
  const config::Record* record = nullptr;
};

/// What `describe` cannot find out by itself: the lists of the registries and the top-level
/// schemas.
struct Catalog {
  /// A model that is named by the path of its file, YAML or a Hugging Face config.json.
  std::function<CatalogEntry(const std::string& path)> model_file;
  std::vector<CatalogEntry> models, topologies, collectives, operators, schedules, kernels;
  std::vector<KeySource> schemas;  ///< for the configuration keys
};

/// A description for people and for programs.
struct Description {
  std::string text;
  nlohmann::ordered_json json;
};

/// `orrery describe [KIND] [NAME...]`. Without words the kinds; with a kind (singular or plural)
/// the list of its names; with names their details. Systems are put side by side; accelerators and
/// systems may be paths of files. Keys are named by their path or the beginning of it.
/// @throws UsageError for a wrong kind or name, with a suggestion; config::ConfigError for a file
/// that is wrong.
Description describe(const std::vector<std::string>& words, const Catalog& catalog,
                     const config::Library& library = config::default_library());

}  // namespace orrery
