// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iostream>
#include <optional>

#include "models/collectives/algorithm.h"
#include "models/kernels/family.h"
#include "models/topologies/fabric.h"
#include "sim/app/cli/verb.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/questions/describe.h"
#include "sim/app/questions/describe_collective.h"
#include "sim/app/questions/describe_topology.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/results/table.h"
#include "workloads/llm/checkpoint_format.h"
#include "workloads/llm/huggingface.h"
#include "workloads/llm/model_config.h"
#include "workloads/operators/operator.h"
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

struct DescribeArguments {
  std::vector<std::string> words;
  int nodes = 1;     ///< of `topology SYSTEM`: copies of the system
  bool dot = false;  ///< of `topology SYSTEM`: its links in Graphviz's language
  bool json = false;

  void take(Options& options);
  ExitCode run() const;
};

ModelConfig load_model(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<ModelConfig>(library.locate("models", name, ""), library, "models");
}

/// How a checkpoint stores a part of most layers that have it.
std::string stored_as(const LlmConfig& model, const Quantization& stored, bool moe,
                      StoredFormat LayerConfig::*part) {
  std::int64_t layers = 0, left_out = 0;
  for (const LayerConfig& layer : model.layers) {
    if (layer.moe != moe) continue;
    ++layers;
    left_out += layer.*part == StoredFormat::kSixteenBit ? 1 : 0;
  }
  if (layers == 0) return {};
  if (left_out == 0) return stored.name;
  if (left_out == layers) return "16 bits";
  return stored.name + ", 16 bits in " + std::to_string(left_out) + " of " +
         std::to_string(layers) + " layers";
}

void add_checkpoint(Table& table, const LlmConfig& model, const Quantization& stored) {
  const bool moe = model.has_moe();
  table.add_row({"checkpoint", stored.name});
  table.add_row({"precision of products", to_string(stored.precision)});
  if (stored.kv_cache) table.add_row({"scales for a KV cache of", to_string(*stored.kv_cache)});
  table.add_row({"stored: attention", stored_as(model, stored, moe, &LayerConfig::attention)});
  const std::string dense = stored_as(model, stored, false, &LayerConfig::feed);
  if (!dense.empty()) table.add_row({"stored: MLP", dense});
  if (!moe) return;
  table.add_row({"stored: experts", stored_as(model, stored, true, &LayerConfig::feed)});
  if (model.moe.shared_intermediate > 0)
    table.add_row({"stored: shared experts", stored_as(model, stored, true, &LayerConfig::shared)});
}

/// Sizes of a model.
std::string model_details(const ModelConfig& model) {
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
  if (const auto stored = model.hf.empty() ? std::nullopt : load_quantization(model.hf.path))
    add_checkpoint(table, llm, *stored);
  std::ostringstream out;
  table.print(out);
  if (!model.source.empty()) out << "source: " << model.source << "\n";
  for (const std::string& warning : llm.warnings) out << "warning: " << warning << "\n";
  return out.str();
}

/// A model by the path of its file.
CatalogEntry model_of_file(const std::string& path) {
  ModelConfig model;
  if (path.ends_with(".json")) {
    model.hf.path = path;
    model.name = load_huggingface(path).name;
  } else {
    model = load_model(path);
  }
  const std::string help = model.source.empty() ? "a Hugging Face configuration" : model.source;
  return {model.name, help, [model] { return model_details(model); }};
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
  for (const std::string& name : config::default_library().names("models")) {
    const ModelConfig model = load_model(name);
    catalog.models.push_back({name, model.source, [model] { return model_details(model); }});
  }
  catalog.model_file = model_of_file;
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
  add_registry<ScheduleRegistry>(catalog.schedules);
  for (const auto& [kind, tiled] : tile_families())
    catalog.kernels.push_back({to_string(kind), "tiles: " + tiled.help});
  catalog.kernels.push_back(
      {"roofline",
       "all other kernels, and all of calibrations of that model: p-norm roofline, launch + "
       "(t_matrix^p + t_vector^p + t_memory^p)^(1/p), rates times efficiency"});
  for (const auto& [kind, info] : experiment_kinds())
    catalog.schemas.push_back({"experiment", "one simulation", kind, &info.record()});
  catalog.schemas.push_back(
      {"sweep", SweepConfig::schema().record().help(), "sweep", &SweepConfig::schema().record()});
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

void DescribeArguments::take(Options& options) {
  options.optional_positionals(
      "KIND", words,
      "a kind (accelerators, systems, models, topologies, collectives, operators, "
      "schedules, kernels, calibrations, metrics, keys), then names");
  options.number("--nodes", nodes, "topology SYSTEM: copies of the system", 1, 1000000);
  options.flag("--dot", dot, "topology SYSTEM: physical links for Graphviz");
  options.json(json);
}

ExitCode DescribeArguments::run() const {
  if (const auto system = named_system(*this)) {
    if (dot) {
      std::cout << topology_dot(*system, nodes);
      return ExitCode::kOk;
    }
    const Description links = describe_topology(*system, nodes);
    std::cout << (json ? links.json.dump(2) + "\n" : links.text);
    return ExitCode::kOk;
  }
  if (dot || nodes != 1) {
    throw UsageError("--dot and --nodes are of `describe topology SYSTEM`");
  }
  const Description description = describe(words, catalog());
  if (json) {
    std::cout << description.json.dump(2) << "\n";
  } else {
    std::cout << description.text;
  }
  return ExitCode::kOk;
}

namespace {

const RegisterVerb<DescribeArguments> registered_describe("describe",
                                                          "what exists; systems side by side");

}  // namespace

}  // namespace orrery
