// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/config/library.h"
#include "sim/config/node.h"
#include "sim/machine/system_config.h"
#include "sim/results/answer.h"

namespace orrery {

struct Calibration;

class CollectiveAlgorithm;
struct ModelConfig;

/// `orrery describe [KIND] [NAME...]`. Without words the kinds; with a kind (singular or plural)
/// the list of its names; with names their details. Systems are put side by side; accelerators and
/// systems may be paths of files. Keys are named by their path or the beginning of it.
/// @throws UsageError for a wrong kind or name, with a suggestion;
/// config::ConfigError for a file that is wrong.
Answer describe(const std::vector<std::string>& words,
                const config::Library& library = config::default_library());

/// One thing that can be described.
struct CatalogEntry {
  std::string name;
  std::string help;                           ///< one line
  std::function<Answer()> details = nullptr;  ///< more than that line; none: the line is all
};

/// A kind of things that the program only knows by name and text.
struct CatalogKind {
  std::string name, singular, help;
  std::vector<CatalogEntry> (*entries)();
  /// The one that a file describes; null: files describe none. @throws config::ConfigError
  CatalogEntry (*of_file)(const std::string& path) = nullptr;
};
/// The kinds in the library and the registries.
std::vector<CatalogKind> catalog();
std::vector<CatalogEntry> described_layer_models();  ///< models that are lists of layers
std::vector<CatalogEntry> described_software();      ///< software of training runs and engines
CatalogEntry described_layer_model(const std::string& path);
CatalogEntry described_software_file(const std::string& path);

/// All accelerators of a library as one table: year, dense rates by format, memory, power, links,
/// as published. JSON has the same in SI base units, with a line of help, and which are estimates.
/// @param sort a column, of whose values the largest stand first, or `name`; empty: by name
/// @throws UsageError for a column that there is not
Answer accelerator_table(const config::Library& library, const std::string& sort = {});
/// The columns to sort by.
std::vector<std::string> accelerator_columns();

/// Every value of an accelerator as simulations use it, beside what is published where that
/// differs, with its source; then figures that follow from them, and warnings of facts that cannot
/// be true together.
///
/// As JSON: {"name", "values": [{"path", "text", "value", "unit", "source", "origin", "nameplate",
/// "nameplate_source", "reason"}], ...}, with what follows from them.
/// @param file what the accelerator was read from
Answer describe_accelerator(const std::string& name, const AcceleratorConfig& accelerator,
                            const config::Node& file);

/// The values that simulations use, side by side, with what was published where that differs; the
/// ratio is that of the second over the first.
/// @param devices names and completed configurations
Table compare_accelerators(const std::vector<std::pair<std::string, config::Node>>& devices);

/// Systems side by side as their vendors publish them; totals are computed from the parts. With two
/// or more systems a column has the second over the first. The last column has what simulations use
/// where that differs, with footnotes that say why. Estimates of ours are marked.
///
/// As JSON, with numbers in the `unit` of their row: {"systems": [name], "parts": {label: [name]},
/// "rows": [{"label", "unit", "published": [number|null], "simulated": [...], "ratio",
/// "estimated": [bool]}], "differences": [{"system", "key", "published", "simulated", "reason",
/// "published_source", "simulated_source"}]}.
Answer describe_systems(const std::vector<SystemConfig>& systems);

/// The links of `copies` of a system: chips and the ports they use, links and bandwidth by kind,
/// bisection, diameter, shortest paths.
/// @throws config::ConfigError for sizes that do not fit together.
Answer describe_topology(const SystemConfig& system, int copies);
/// The physical links in the language of Graphviz, one edge for all between two vertices.
std::string topology_dot(const SystemConfig& system, int copies);

/// Errors of every fit, on what was fitted and on what was held out; of a single calibration also
/// its parameters with their standard errors, and the files it rests on.
Answer describe_calibrations(const std::vector<Calibration>& calibrations);
/// A line for each rule that left rows out, and for each table that breaks physics.
std::string left_out_text(const std::vector<Calibration>& calibrations);
nlohmann::ordered_json left_out_json(const std::vector<Calibration>& calibrations);

/// A model in one screen: layers by kind, parameters by module, how its checkpoint stores them,
/// bytes of cache and state of a token and a sequence, FLOPs of a token at some contexts.
Answer model_details(const ModelConfig& model);

/// The collectives that an algorithm serves on some machine: "all_gather, reduce_scatter".
std::string served_kinds(const CollectiveAlgorithm& algorithm);
/// A table of them: dependent steps on an example inside a system and one between systems, and what
/// the fabric must be able to do.
Answer served_steps(const CollectiveAlgorithm& algorithm);

}  // namespace orrery
