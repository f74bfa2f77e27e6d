// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <optional>

#include "models/collectives/algorithm.h"
#include "models/topologies/fabric.h"
#include "sim/app/commands.h"
#include "sim/app/describe.h"
#include "sim/app/describe_collective.h"
#include "sim/app/describe_topology.h"
#include "sim/app/experiment.h"
#include "sim/app/sweep_config.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/results/table.h"
#include "workloads/llm/closed_forms.h"

namespace orrery {
namespace {

/// Sizes of a model of the library.
std::string model_details(const std::string& name) {
  const config::Library& library = config::default_library();
  const auto model =
      config::load<ModelConfig>(library.locate("models", name, ""), library, "models");
  const LlmConfig llm = model.build();
  const ParameterCount count = count_parameters(llm);
  Table table({{"what"}, {"value", Table::Align::kRight}});
  const auto add = [&table](const char* what, std::int64_t value) {
    table.add_row({what, std::to_string(value)});
  };
  add("layers", llm.layer_count());
  add("hidden", llm.hidden);
  add("heads", llm.attention.heads);
  add("vocabulary", llm.vocabulary);
  add("experts", llm.moe.experts);
  add("experts per token", llm.moe.experts_per_token);
  add("KV cache elements per token and layer", llm.attention.kv_elements_per_token());
  add("parameters", count.total);
  add("parameters used by one token", count.active);
  std::ostringstream out;
  table.print(out);
  out << "source: " << model.source << "\n";
  return out.str();
}

/// The keys of an operator.
std::string operator_details(const OperatorInfo& info) {
  Table table({{"key"}, {"default"}, {"what it is"}, {"type"}});
  for (const config::KeyHelp& key : config::describe_keys(info.record()))
    table.add_row({key.path, key.fallback, key.help, key.type});
  std::ostringstream out;
  table.print(out);
  return out.str();
}

template <class R>
void add_registry(std::vector<CatalogEntry>& entries) {
  for (const auto& [name, item] : R::items()) entries.push_back({name, item.help});
}

Catalog catalog() {
  Catalog catalog;
  const config::Library& library = config::default_library();
  for (const std::string& name : library.names("models")) {
    const auto model =
        config::load<ModelConfig>(library.locate("models", name, ""), library, "models");
    catalog.models.push_back({name, model.source, [name] { return model_details(name); }});
  }
  add_registry<ScaleUpRegistry>(catalog.topologies);
  add_registry<ScaleOutRegistry>(catalog.topologies);
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    const CollectiveAlgorithm& algorithm = *item.entry;
    catalog.collectives.push_back({name, item.help + ": " + served_kinds(algorithm),
                                   [&algorithm] { return served_steps(algorithm); }});
  }
  for (const auto& [kind, info] : operators()) {
    const OperatorInfo& described = info;
    catalog.operators.push_back(
        {kind, info.help, [&described] { return operator_details(described); }});
  }
  catalog.kernels = {
      {"tiles", "attention over prompts by tiles, steps and waves; other kernels as roofline"},
      {"roofline",
       "p-norm roofline: launch + (t_matrix^p + t_vector^p + t_memory^p)^(1/p), "
       "rates times efficiency"}};
  catalog.schemas = {&Experiment::schema().record(), &SweepConfig::schema().record()};
  return catalog;
}

/// The system of `topology SYSTEM`; nothing for a kind of topology and for other words.
/// @throws config::ConfigError for a name that is neither
std::optional<SystemConfig> named_system(const DescribeArguments& arguments) {
  const std::vector<std::string>& words = arguments.words;
  if (words.size() != 2 || (words[0] != "topology" && words[0] != "topologies")) return {};
  if (ScaleUpRegistry::items().count(words[1]) + ScaleOutRegistry::items().count(words[1]) > 0)
    return {};
  const config::Library& library = config::default_library();
  return config::load<SystemConfig>(library.locate("systems", words[1], ""), library, "systems");
}

}  // namespace

ExitCode describe_command(const DescribeArguments& arguments) {
  if (const auto system = named_system(arguments)) {
    if (arguments.dot) {
      std::cout << topology_dot(*system, arguments.nodes);
      return ExitCode::kOk;
    }
    const Description links = describe_topology(*system, arguments.nodes);
    std::cout << (arguments.json ? links.json.dump(2) + "\n" : links.text);
    return ExitCode::kOk;
  }
  if (arguments.dot || arguments.nodes != 1) {
    throw UsageError("--dot and --nodes are of `describe topology SYSTEM`");
  }
  const Description description = describe(arguments.words, catalog());
  if (arguments.json) {
    std::cout << description.json.dump(2) << "\n";
  } else {
    std::cout << description.text;
  }
  return ExitCode::kOk;
}

}  // namespace orrery
