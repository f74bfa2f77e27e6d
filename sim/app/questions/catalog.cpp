// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/catalog.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "models/collectives/algorithm.h"
#include "models/kernels/family.h"
#include "models/topologies/fabric.h"
#include "sim/app/experiments/experiment.h"
#include "sim/app/questions/describe_collective.h"
#include "sim/app/questions/describe_software.h"
#include "sim/app/questions/named_values.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "sim/serving/request_source.h"
#include "sim/serving/router.h"
#include "sim/serving/scheduler.h"
#include "workloads/llm/checkpoint_format.h"
#include "workloads/llm/huggingface.h"
#include "workloads/llm/mixer.h"
#include "workloads/llm/model_config.h"
#include "workloads/operators/operator.h"
#include "workloads/requests/trace_format.h"
#include "workloads/schedules/schedule.h"

namespace orrery {
namespace {

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

void add_checkpoint(NamedValues& values, const LlmConfig& model, const Quantization& stored) {
  const bool moe = model.has_moe();
  values.add("checkpoint", stored.name);
  values.add("precision of products", to_string(stored.precision));
  if (stored.kv_cache) values.add("scales for a KV cache of", to_string(*stored.kv_cache));
  values.add("stored: attention", stored_as(model, stored, moe, &LayerConfig::attention));
  const std::string dense = stored_as(model, stored, false, &LayerConfig::feed);
  if (!dense.empty()) values.add("stored: MLP", dense);
  if (!moe) return;
  values.add("stored: experts", stored_as(model, stored, true, &LayerConfig::feed));
  if (model.moe.shared_intermediate > 0)
    values.add("stored: shared experts", stored_as(model, stored, true, &LayerConfig::shared));
}

/// Layers by what they are made of, and what those with a state hold of a sequence.
void add_layers(NamedValues& values, const LlmConfig& llm) {
  if (unlike_attention(llm).empty()) return;
  const auto add = [&](const std::string& what, auto counts) {
    const auto count = std::count_if(llm.layers.begin(), llm.layers.end(), counts);
    values.add(what, std::to_string(count), count);
  };
  std::vector<LayerConfig> kinds;
  for (const LayerConfig& layer : llm.layers) {
    const auto known = [&](const LayerConfig& other) { return other.mixer == layer.mixer; };
    if (mixer_of(llm, layer) != nullptr && std::none_of(kinds.begin(), kinds.end(), known))
      kinds.push_back(layer);
  }
  for (const LayerConfig& kind : kinds)
    add("layers of " + std::string(to_string(kind.mixer)),
        [&](const LayerConfig& l) { return l.mixer == kind.mixer; });
  add("layers of experts", [](const LayerConfig& l) { return l.feeds && l.moe; });
  add("layers of MLP", [](const LayerConfig& l) { return l.feeds && !l.moe; });
  // 16 bits an element, 8 of what indexers keep.
  std::int64_t of_token = 0;
  double of_sequence = 0;
  for (const LayerConfig& layer : llm.layers) {
    const Mixer* mixer = mixer_of(llm, layer);
    if (mixer == nullptr) continue;
    const SequenceCache cache = mixer->cache(llm, 1);
    of_token += 2 * cache.token_elements + cache.index_elements;
    of_sequence += cache.state_bytes;
  }
  values.add("cache bytes per token", std::to_string(of_token), of_token);
  for (const LayerConfig& kind : kinds) {
    const std::int64_t bytes = std::llround(mixer_of(llm, kind)->cache(llm, 1).state_bytes);
    if (bytes > 0)
      values.add("state bytes per sequence and layer of " + std::string(to_string(kind.mixer)),
                 std::to_string(bytes), bytes);
  }
  const std::int64_t states = std::llround(of_sequence);
  if (states > 0) values.add("state bytes per sequence", std::to_string(states), states);
}

/// Sizes of a model.
Answer model_details(const ModelConfig& model) {
  const LlmConfig llm = model.build();
  const ParameterCount count = count_parameters(llm);
  NamedValues values;
  const auto add = [&values](const char* what, std::int64_t value) {
    values.add(what, std::to_string(value), value);
  };
  add("layers", llm.layer_count());
  add("hidden", llm.hidden);
  add("heads", llm.attention.heads);
  add("vocabulary", llm.vocabulary);
  add("experts", llm.moe.experts);
  add("experts per token", llm.moe.experts_per_token);
  add_layers(values, llm);
  if (llm.has(MixerKind::kAttention))
    add("KV cache elements per token and layer", llm.attention.kv_elements_per_token());
  add("parameters", count.total);
  add("parameters used by one token", count.active);
  if (const auto stored = model.hf.empty() ? std::nullopt : load_quantization(model.hf.path))
    add_checkpoint(values, llm, *stored);
  Answer answer = values.answer(Table::Align::kRight);
  if (!model.source.empty()) answer.add("source: " + model.source + "\n");
  for (const std::string& warning : llm.warnings) answer.add("warning: " + warning + "\n");
  answer.json["source"] = model.source;
  answer.json["warnings"] = llm.warnings;
  return answer;
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
  catalog.software = described_software();
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
        {kind, info.help, [&described] { return key_details(described.record()); }});
  }
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
  for (const auto& [kind, info] : experiment_kinds())
    catalog.schemas.push_back({"experiment", "one simulation", kind, &info.record()});
  catalog.schemas.push_back(
      {"sweep", SweepConfig::schema().record().help(), "sweep", &SweepConfig::schema().record()});
  return catalog;
}

}  // namespace orrery
