// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "models/topologies/fabric.h"
#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/verb.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/config/load.h"

namespace orrery {
namespace {

struct DescribeQuestion {
  std::vector<std::string> words;
  int nodes = 1;     ///< copies of the system, of `topology SYSTEM`
  std::string sort;  ///< column of `accelerators`
  bool dot = false;  ///< links of the system in Graphviz's language, of `topology SYSTEM`

  void take(Options& options) {
    options.optional_positionals(
        "KIND", words,
        "a kind (accelerators, systems, models, layer_models, layers, topologies, collectives, "
        "operators, schedulers, routers, workloads, traces, schedules, kernels, calibrations, "
        "metrics, keys), then names");
    options.number("--nodes", nodes, "topology SYSTEM: copies of the system", 1, 1000000);
    options.option("--sort", sort,
                   "accelerators: the column whose largest values stand first (year, bf16, "
                   "bandwidth, tdp, ...)");
    options.flag("--dot", dot, "topology SYSTEM: physical links for Graphviz");
  }

  Answer answer() const {
    if (const auto system = named_system()) {
      if (!dot) return describe_topology(*system, nodes);
      const std::string graph = topology_dot(*system, nodes);
      return {.parts = {graph}, .json = graph};
    }
    if (!sort.empty()) {
      if (words != std::vector<std::string>{"accelerators"})
        throw UsageError("--sort is of `describe accelerators`");
      return accelerator_table(config::default_library(), sort);
    }
    if (dot || nodes != 1) throw UsageError("--dot and --nodes are of `describe topology SYSTEM`");
    return describe(words);
  }

 private:
  /// The system of `topology SYSTEM`; nothing for a kind of topology and for other words.
  /// @throws config::ConfigError for a name that is neither
  std::optional<SystemConfig> named_system() const {
    if (words.size() != 2 || (words[0] != "topology" && words[0] != "topologies")) return {};
    if (ScaleUpRegistry::items().count(words[1]) + ScaleOutRegistry::items().count(words[1]) > 0)
      return {};
    const config::Library& library = config::default_library();
    return config::load<SystemConfig>(library.locate("systems", words[1], ""), library, "systems");
  }
};

const RegisterQuestion<DescribeQuestion> registered_describe("describe",
                                                             "what exists; systems side by side");

}  // namespace
}  // namespace orrery
