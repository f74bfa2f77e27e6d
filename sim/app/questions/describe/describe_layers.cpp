// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "sim/config/load.h"
#include "sim/results/table.h"
#include "workloads/layers/listed/layer_model.h"
#include "workloads/layers/listed/layer_step.h"

namespace orrery {
namespace {

LayerModelConfig load_layer_model(const std::string& name) {
  const config::Library& library = config::default_library();
  return config::load<LayerModelConfig>(library.locate("layer_models", name, ""), library,
                                        "layer_models");
}

/// Operators of one layer of the list.
struct LayerRow {
  std::string name;
  Extent result;
  std::int64_t parameters = 0, multiply_adds = 0;
};

/// Operators by what their names have before the last word: the layer, and its repetition.
std::vector<LayerRow> rows_of(const LayerGraph& graph) {
  std::vector<LayerRow> rows;
  for (const ListedOp& op : graph.ops()) {
    if (rows.empty() || rows.back().name != op.layer) rows.push_back({op.layer, {}, 0, 0});
    rows.back().result = op.result;
    rows.back().parameters += op.parameters;
    rows.back().multiply_adds += op.multiply_adds;
  }
  return rows;
}

void add_sizes(const LayerModelConfig& model, Answer& answer) {
  NamedValues values;
  const LayerGraph sizes_of = model.build({});
  values.add_count("parameters", sizes_of.parameters());
  values.add_count("multiply-adds of a sample", sizes_of.multiply_adds());
  for (const Precision precision : {Precision::kFp32, Precision::kInt8}) {
    const std::string in = std::string(" in ") + to_string(precision);
    const LayerGraph graph = model.build({.precision = precision, .fuses = true});
    values.add_quantity("weights" + in,
                        static_cast<double>(graph.parameters()) * element_bytes(precision), "B");
    values.add_quantity("most activations of a sample" + in, tensor_profile(graph).peak().base(),
                        "B");
  }
  const Answer sizes = values.answer(Table::Align::kRight);
  answer.add(sizes);
  answer.json["sizes"] = sizes.json;
}

Answer layer_model_details(const LayerModelConfig& model) {
  const LayerGraph graph = model.build({});
  Answer answer;
  answer.json["layers"] = nlohmann::ordered_json::array();
  Table table = Table::titled("layer | >result | >parameters | >multiply-adds");
  for (const LayerRow& row : rows_of(graph)) {
    table.add_row({row.name, to_string(row.result), std::to_string(row.parameters),
                   std::to_string(row.multiply_adds)});
    answer.json["layers"].push_back({{"layer", row.name},
                                     {"channels", row.result.channels},
                                     {"rows", row.result.rows},
                                     {"columns", row.result.columns},
                                     {"parameters", row.parameters},
                                     {"multiply_adds", row.multiply_adds}});
  }
  answer.add(std::move(table));
  add_sizes(model, answer);
  return answer;
}

CatalogEntry entry_of(LayerModelConfig model) {
  std::string name = model.name, source = model.source;
  return {std::move(name), std::move(source),
          [model = std::move(model)] { return layer_model_details(model); }};
}

}  // namespace

std::vector<CatalogEntry> described_layer_models() {
  std::vector<CatalogEntry> entries;
  for (const std::string& name : config::default_library().names("layer_models"))
    entries.push_back(entry_of(load_layer_model(name)));
  return entries;
}

CatalogEntry described_layer_model(const std::string& path) {
  return entry_of(load_layer_model(path));
}

}  // namespace orrery
