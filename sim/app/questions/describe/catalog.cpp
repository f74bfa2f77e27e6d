// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "models/collectives/algorithm.h"
#include "models/kernels/device/family.h"
#include "models/topologies/fabric.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "sim/results/json_table.h"
#include "sim/serving/request_source.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
#include "sim/units/comma_separated.h"
#include "workloads/layers/listed/listed_layer.h"
#include "workloads/models/config/model_config.h"
#include "workloads/models/huggingface/huggingface.h"
#include "workloads/operators/operator.h"
#include "workloads/requests/trace_format.h"
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

ModelConfig load_model(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<ModelConfig>(library.locate("models", name, ""), library, "models");
}

/// The keys of one of several structs.
Answer key_details(const config::Record& record) {
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  for (const config::KeyHelp& key : config::describe_keys(record))
    answer.json.push_back(
        {{"key", key.path}, {"default", key.fallback}, {"help", key.help}, {"type", key.type}});
  answer.add(
      json_table(answer.json, "key = key | default = default | what it is = help | type = type"));
  return answer;
}

/// Structs with keys of their own.
template <class Base>
std::vector<CatalogEntry> structs() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, item] : config::Registered<Base>::items())
    entries.push_back({name, item.help, [record = item.record] { return key_details(record()); }});
  return entries;
}

template <class R>
std::vector<CatalogEntry> registry() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, item] : R::items()) entries.push_back({name, item.help});
  return entries;
}

/// What the model "tiles" has no family for: the classes that the roofline predicts there.
std::string classes_without_tiles() {
  std::vector<std::string> classes;
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values)
    if (!tile_families().contains(kind)) classes.emplace_back(name);
  return comma_joined(classes);
}

std::vector<CatalogEntry> described_models() {
  std::vector<CatalogEntry> entries;
  for (const std::string& name : config::default_library().names("models")) {
    const ModelConfig model = load_model(name);
    entries.push_back({name, model.source, [model] { return model_details(model); }});
  }
  return entries;
}

CatalogEntry described_model(const std::string& path) {
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

std::vector<CatalogEntry> described_topologies() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, item] : ScaleUpRegistry::items())
    entries.push_back(
        {name, item.help, [record = item.entry.record] { return key_details(record()); }});
  for (CatalogEntry& entry : registry<ScaleOutRegistry>()) entries.push_back(std::move(entry));
  return entries;
}

std::vector<CatalogEntry> described_collectives() {
  std::vector<CatalogEntry> entries;
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    const CollectiveAlgorithm& algorithm = *item.entry;
    entries.push_back({name, item.help + ": " + served_kinds(algorithm),
                       [&algorithm] { return served_steps(algorithm); }});
  }
  return entries;
}

std::vector<CatalogEntry> described_kernels() {
  std::vector<CatalogEntry> entries;
  for (const auto& [kind, tiled] : tile_families())
    entries.push_back({to_string(kind), "tiles: " + tiled.help});
  entries.push_back(
      {"roofline",
       classes_without_tiles() +
           "; every kernel of calibrations of the model roofline: p-norm roofline, launch + "
           "(t_matrix^p + t_vector^p + t_memory^p + t_host^p)^(1/p), rates times efficiency"});
  return entries;
}

}  // namespace

std::vector<CatalogKind> catalog() {
  return {
      {"models", "model", "language models; NAME or PATH (YAML, config.json): sizes, formats",
       described_models, described_model},
      {"layer_models", "layer_model", "models as lists of layers; NAME or PATH: layers, sizes",
       described_layer_models, described_layer_model},
      {"layers", "layer", "kinds of layers of such lists; NAME: its keys", structs<ListedLayer>},
      {"topologies", "topology", "network topologies", described_topologies},
      {"collectives", "collective", "collective algorithms", described_collectives},
      {"operators", "operator", "what `experiment: operator` runs; NAME: its keys",
       structs<OperatorConfig>},
      {"schedulers", "scheduler", "engines of serving; NAME: its keys under `engine`",
       structs<SchedulerConfig>},
      {"routers", "router", "what spreads requests over replicas", registry<Routers>},
      {"workloads", "workload", "requests; NAME: its keys", structs<RequestSourceConfig>},
      {"traces", "trace", "forms of recorded requests", registry<TraceFormats>},
      {"schedules", "schedule", "pipeline schedules of training", registry<ScheduleRegistry>},
      {"software", "software",
       "training software and defaults of serving engines; NAME: values, sources",
       described_software, described_software_file},
      {"kernels", "kernel", "kernel models", described_kernels}};
}

}  // namespace orrery
