// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "sim/app/questions/describe/facts.h"
#include "sim/results/json_table.h"
#include "sim/serving/engine_release.h"
#include "workloads/software/training_software.h"

namespace orrery {
namespace {

Loaded<TrainingSoftware> load(const std::string& name) {
  const config::Library& library = config::default_library();
  return load_with_node<TrainingSoftware>(library.locate("software", name, ""), library,
                                          "software");
}

/// Where the value of a switch was read: as the file says, or as the default has it.
std::string source_of(const Loaded<TrainingSoftware>& loaded, const config::Leaf& leaf) {
  const config::Node* written = loaded.node.at_path(leaf.path);
  const config::Node* source = written != nullptr ? written->find("source") : nullptr;
  if (source != nullptr) return source->text();
  if (leaf.origin != "default") return leaf.origin;
  const config::Field* field = TrainingSoftware::schema().record().find(leaf.path);
  TrainingSoftware fallback;
  return *field->type->fact_text(field->address(&fallback), "source");
}

Answer switches(const std::string& name) {
  const Loaded<TrainingSoftware> loaded = load(name);
  const config::Record& record = TrainingSoftware::schema().record();
  Answer answer{.parts = {}, .json = nlohmann::ordered_json::array()};
  for (const config::Leaf& leaf : config::flatten(loaded.node, record)) {
    const config::Field* field = record.find(leaf.path);
    if (field == nullptr || field->type->kind != config::TypeKind::kFact) continue;
    answer.json.push_back({{"switch", leaf.path},
                           {"value", leaf.text},
                           {"source", source_of(loaded, leaf)},
                           {"help", field->help}});
  }
  answer.add(json_table(answer.json, "switch = switch | value = value | source = source"));
  return answer;
}

/// "[1, 2, 4]", "[{to: 4, step: 2}]", "request: 27.2 ms, launch: 18.9 us".
std::string text_of(const config::Node& value) {
  if (value.is_scalar()) return value.text();
  std::string text;
  for (const config::Node& item : value.items()) {
    const std::string inner = text_of(item);
    text += (text.empty() ? "" : ", ") + (item.is_map() ? "{" + inner + "}" : inner);
  }
  for (const config::Node::Entry& entry : value.entries())
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", entry.key, text_of(entry.value));
  return value.is_sequence() ? "[" + text + "]" : text;
}

/// "memory >= 70 GiB: 8192; otherwise 2048".
std::string text_of(const EngineRule& rule) {
  std::string text;
  for (const RuleCase& one : rule.cases()) {
    const std::string condition = one.text();
    const std::string otherwise = text.empty() ? "" : "otherwise ";
    text += (text.empty() ? "" : "; ") + (condition.empty() ? otherwise : condition + ": ") +
            text_of(one.value);
  }
  return text;
}

void add_rule(const std::string& key, const std::string& from, const EngineRule& rule,
              nlohmann::ordered_json& rules) {
  rules.push_back(
      {{"switch", key}, {"from", from}, {"value", text_of(rule)}, {"source", rule.source}});
}

Answer answer_of(const nlohmann::ordered_json& rules) {
  return {.parts = {json_table(rules,
                               "key = switch | from = from | default = value | "
                               "source = source")},
          .json = rules};
}

/// The version that has a rule first, by its source. @return `own` where none has it
std::string first_version(const std::string& engine, const std::string& key,
                          const std::string& source, const std::string& own) {
  for (const auto& [version, name] : engine_releases(engine)) {
    const auto rules = load_engine_release(name).rules;
    const auto rule = rules.find(key);
    if (rule != rules.end() && rule->second.source == source) return version.text();
  }
  return own;
}

/// The defaults of a version that a user wrote.
Answer own_defaults(const std::string& name) {
  auto rules = nlohmann::ordered_json::array();
  const EngineRelease release = load_engine_release(name);
  for (const auto& [key, rule] : release.rules)
    add_rule(key, first_version(release.engine, key, rule.source, release.version), rule, rules);
  return answer_of(rules);
}

/// The defaults of an engine by the versions that changed them, up to one release.
Answer defaults(const std::string& engine, const std::string& last) {
  std::map<std::string, std::vector<std::pair<std::string, EngineRule>>> changes;
  for (const auto& [version, name] : engine_releases(engine)) {
    for (const auto& [key, rule] : load_engine_release(name).rules) {
      auto& of_key = changes[key];
      if (of_key.empty() || of_key.back().second.source != rule.source)
        of_key.emplace_back(name == engine ? "any" : version.text(), rule);
    }
    if (name == last) break;
  }
  auto rules = nlohmann::ordered_json::array();
  for (const auto& [key, of_key] : changes) {
    const auto first = last.empty() ? of_key.begin() : std::prev(of_key.end());
    for (auto change = first; change != of_key.end(); ++change)
      add_rule(key, change->first, change->second, rules);
  }
  return answer_of(rules);
}

/// Each engine with releases, and each of those.
void add_engines(std::vector<CatalogEntry>& entries) {
  for (const auto& [kind, item] : config::Registered<SchedulerConfig>::items()) {
    const std::string engine = kind;
    const auto releases = engine_releases(engine);
    if (releases.empty()) continue;
    const bool alone = releases.begin()->second == engine;
    entries.push_back(
        {engine,
         alone ? load_engine_release(engine).name : "defaults of all versions of the engine",
         [engine] { return defaults(engine, ""); }});
    for (const auto& release : releases) {
      const std::string name = release.second;
      if (name == engine) continue;
      entries.push_back({name, load_engine_release(name).name,
                         [engine, name] { return defaults(engine, name); }});
    }
  }
}

}  // namespace

std::vector<CatalogEntry> described_software() {
  std::vector<CatalogEntry> entries;
  add_engines(entries);
  std::set<std::string> described;
  for (const CatalogEntry& entry : entries) described.insert(entry.name);
  for (const std::string& name : config::default_library().names("software")) {
    if (described.contains(name)) continue;
    if (is_engine_release(name)) {
      entries.push_back(
          {name, load_engine_release(name).name, [name] { return own_defaults(name); }});
    } else {
      entries.push_back({name, load(name).object.name, [name] { return switches(name); }});
    }
  }
  std::ranges::sort(entries, {}, &CatalogEntry::name);
  return entries;
}

CatalogEntry described_software_file(const std::string& path) {
  const EngineRelease release = load_engine_release(path);
  require_rules(release);
  return {path, release.name, [path] { return own_defaults(path); }};
}

}  // namespace orrery
