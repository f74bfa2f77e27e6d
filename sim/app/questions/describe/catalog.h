// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/config/schema.h"
#include "sim/results/answer.h"

namespace orrery {

/// One thing that can be described.
struct CatalogEntry {
  std::string name;
  std::string help;                           ///< one line
  std::function<Answer()> details = nullptr;  ///< more than that line; none: the line is all
};

/// The thing that a file describes.
using EntryOfFile = std::function<CatalogEntry(const std::string& path)>;

/// A struct whose keys can be described.
struct KeySource {
  std::string file;  ///< what its files are called: "experiment"
  std::string help;  ///< what such a file has, one line
  std::string kind;  ///< kind of such a file where there are several: "training"
  const config::Record* record = nullptr;
};

/// What `describe` cannot find out by itself: the lists of the registries and the top-level
/// schemas.
struct Catalog {
  /// A model that is named by the path of its file, YAML or a Hugging Face config.json.
  EntryOfFile model_file;
  EntryOfFile layer_model_file;  ///< a list of layers likewise
  EntryOfFile software_file;     ///< a version of an engine that a user wrote
  std::vector<CatalogEntry> models, topologies, collectives, operators, schedules, kernels;
  std::vector<CatalogEntry> layer_models, layers;  ///< models that are lists; kinds of layers
  std::vector<CatalogEntry> software;              ///< software of training runs
  std::vector<CatalogEntry> schedulers, routers, workloads, traces;  ///< parts of serving
  std::vector<KeySource> schemas;  ///< schemas that have the configuration keys
};

/// The models of the library, all registries, and the schemas of experiments and sweeps.
Catalog shipped_catalog();

}  // namespace orrery
