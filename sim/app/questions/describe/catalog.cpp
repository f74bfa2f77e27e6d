// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/catalog.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "models/collectives/algorithm.h"
#include "models/kernels/device/family.h"
#include "models/topologies/fabric.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/questions/describe/describe_collective.h"
#include "sim/app/questions/describe/describe_layers.h"
#include "sim/app/questions/describe/describe_model.h"
#include "sim/app/questions/describe/describe_software.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "sim/serving/request_source.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
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

/// The keys of one of several structs.
Answer key_details(const config::Record& record) {
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  Table table({{"key"}, {"default"}, {"what it is"}, {"type"}});
  for (const config::KeyHelp& key : config::describe_keys(record)) {
    table.add_row({key.path, key.fallback, key.help, key.type});
    answer.json.push_back(
        {{"key", key.path}, {"default", key.fallback}, {"help", key.help}, {"type", key.type}});
  }
  answer.add(std::move(table));
  return answer;
}

template <class Base>
void add_structs(std::vector<CatalogEntry>& entries) {
  for (const auto& [name, item] : config::Registered<Base>::items()) {
    const auto record = item.record;
    entries.push_back({name, item.help, [record] { return key_details(record()); }});
  }
}

template <class R>
void add_registry(std::vector<CatalogEntry>& entries) {
  for (const auto& [name, item] : R::items()) entries.push_back({name, item.help});
}

/// What the model "tiles" has no family for: the classes that the roofline predicts there.
std::string classes_without_tiles() {
  std::string classes;
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values)
    if (!tile_families().contains(kind))
      classes += (classes.empty() ? "" : ", ") + std::string(name);
  return classes;
}

}  // namespace

Catalog shipped_catalog() {
  Catalog catalog;
  for (const std::string& name : config::default_library().names("models")) {
    const ModelConfig model = load_model(name);
    catalog.models.push_back({name, model.source, [model] { return model_details(model); }});
  }
  catalog.model_file = model_of_file;
  catalog.layer_models = described_layer_models();
  catalog.layer_model_file = described_layer_model;
  add_structs<ListedLayer>(catalog.layers);
  catalog.software = described_software();
  catalog.software_file = described_software_file;
  for (const auto& [name, item] : ScaleUpRegistry::items()) {
    const auto record = item.entry.record;
    catalog.topologies.push_back({name, item.help, [record] { return key_details(record()); }});
  }
  add_registry<ScaleOutRegistry>(catalog.topologies);
  for (const auto& [name, item] : AlgorithmRegistry::items()) {
    const CollectiveAlgorithm& algorithm = *item.entry;
    catalog.collectives.push_back({name, item.help + ": " + served_kinds(algorithm),
                                   [&algorithm] { return served_steps(algorithm); }});
  }
  add_structs<OperatorConfig>(catalog.operators);
  add_registry<ScheduleRegistry>(catalog.schedules);
  add_structs<SchedulerConfig>(catalog.schedulers);
  add_registry<Routers>(catalog.routers);
  add_structs<RequestSourceConfig>(catalog.workloads);
  add_registry<TraceFormats>(catalog.traces);
  for (const auto& [kind, tiled] : tile_families())
    catalog.kernels.push_back({to_string(kind), "tiles: " + tiled.help});
  catalog.kernels.push_back(
      {"roofline",
       classes_without_tiles() +
           "; every kernel of calibrations of the model roofline: p-norm roofline, launch + "
           "(t_matrix^p + t_vector^p + t_memory^p + t_host^p)^(1/p), rates times efficiency"});
  for (const auto& [kind, info] : ExperimentKinds::items())
    catalog.schemas.push_back({"experiment", "one simulation", kind, &info.record()});
  catalog.schemas.push_back(
      {"sweep", SweepConfig::schema().record().help(), "sweep", &SweepConfig::schema().record()});
  return catalog;
}

}  // namespace orrery
