// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe_software.h"

#include <nlohmann/json.hpp>

#include "sim/config/load.h"
#include "sim/config/output.h"
#include "workloads/llm/training_software.h"

namespace orrery {
namespace {

struct LoadedSoftware {
  config::Node node;  ///< configuration with defaults filled in
  TrainingSoftware software;
};

LoadedSoftware load(const std::string& name) {
  const config::Library& library = config::default_library();
  config::Diagnostics diagnostics;
  const config::Node node =
      config::load_file(library.locate("software", name, ""), diagnostics, library, "software");
  diagnostics.throw_if_errors();
  const config::Record& record = TrainingSoftware::schema().record();
  LoadedSoftware loaded{config::complete(node, record, diagnostics, library), {}};
  config::fill(&loaded.software, loaded.node, record, diagnostics);
  diagnostics.throw_if_errors();
  return loaded;
}

/// Where the value of a switch was read: as the file says, or as the default has it.
std::string source_of(const LoadedSoftware& loaded, const config::Leaf& leaf) {
  const config::Node* written = loaded.node.at_path(leaf.path);
  const config::Node* source = written != nullptr ? written->find("source") : nullptr;
  if (source != nullptr) return source->text();
  if (leaf.origin != "default") return leaf.origin;
  const config::Field* field = TrainingSoftware::schema().record().find(leaf.path);
  TrainingSoftware fallback;
  return *field->type->fact_text(field->address(&fallback), "source");
}

Answer switches(const std::string& name) {
  const LoadedSoftware loaded = load(name);
  const config::Record& record = TrainingSoftware::schema().record();
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  Table table({{"switch"}, {"value"}, {"source"}});
  for (const config::Leaf& leaf : config::flatten(loaded.node, record)) {
    const config::Field* field = record.find(leaf.path);
    if (field == nullptr || field->type->kind != config::TypeKind::kFact) continue;
    const std::string source = source_of(loaded, leaf);
    table.add_row({leaf.path, leaf.text, source});
    answer.json.push_back(
        {{"switch", leaf.path}, {"value", leaf.text}, {"source", source}, {"help", field->help}});
  }
  answer.add(std::move(table));
  return answer;
}

}  // namespace

std::vector<CatalogEntry> described_software() {
  std::vector<CatalogEntry> entries;
  for (const std::string& name : config::default_library().names("software"))
    entries.push_back({name, load(name).software.name, [name] { return switches(name); }});
  return entries;
}

}  // namespace orrery
