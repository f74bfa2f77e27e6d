// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/results/answer.h"

namespace orrery {

class CollectiveAlgorithm;
struct ModelConfig;

/// One thing that can be described.
struct CatalogEntry {
  std::string name;
  std::string help;                           ///< one line
  std::function<Answer()> details = nullptr;  ///< more than that line; none: the line is all
};

/// Lists of each kind in the library and the registries.
std::vector<CatalogEntry> described_models();
std::vector<CatalogEntry> described_layer_models();  ///< models that are lists of layers
std::vector<CatalogEntry> described_layers();        ///< kinds of layers of such lists
std::vector<CatalogEntry> described_software();      ///< software of training runs and engines
std::vector<CatalogEntry> described_topologies();
std::vector<CatalogEntry> described_collectives();
std::vector<CatalogEntry> described_operators();
std::vector<CatalogEntry> described_schedules();
std::vector<CatalogEntry> described_schedulers();
std::vector<CatalogEntry> described_routers();
std::vector<CatalogEntry> described_workloads();
std::vector<CatalogEntry> described_traces();
std::vector<CatalogEntry> described_kernels();

/// The one that a file describes: a model (YAML or a Hugging Face config.json), a list of layers, a
/// version of an engine. @throws config::ConfigError
CatalogEntry described_model(const std::string& path);
CatalogEntry described_layer_model(const std::string& path);
CatalogEntry described_software_file(const std::string& path);

/// A model in one screen: layers by kind, parameters by module, how its checkpoint stores them,
/// bytes of cache and state of a token and a sequence, FLOPs of a token at some contexts.
Answer model_details(const ModelConfig& model);

/// The collectives that an algorithm serves on some machine: "all_gather, reduce_scatter".
std::string served_kinds(const CollectiveAlgorithm& algorithm);
/// A table of them: dependent steps on an example inside a system and one between systems, and what
/// the fabric must be able to do.
Answer served_steps(const CollectiveAlgorithm& algorithm);

}  // namespace orrery
