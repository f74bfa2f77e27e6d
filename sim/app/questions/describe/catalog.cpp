// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/catalog.h"

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
  std::string classes;
  for (const auto& [kind, name] : config::EnumNames<KernelClass>::values)
    if (!tile_families().contains(kind))
      classes += (classes.empty() ? "" : ", ") + std::string(name);
  return classes;
}

}  // namespace

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

std::vector<CatalogEntry> described_layers() { return structs<ListedLayer>(); }

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

std::vector<CatalogEntry> described_operators() { return structs<OperatorConfig>(); }
std::vector<CatalogEntry> described_schedules() { return registry<ScheduleRegistry>(); }
std::vector<CatalogEntry> described_schedulers() { return structs<SchedulerConfig>(); }
std::vector<CatalogEntry> described_routers() { return registry<Routers>(); }
std::vector<CatalogEntry> described_workloads() { return structs<RequestSourceConfig>(); }
std::vector<CatalogEntry> described_traces() { return registry<TraceFormats>(); }

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

}  // namespace orrery
