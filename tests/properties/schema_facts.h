// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/core/simulate.h"
#include "sim/app/questions/explain/effects.h"
#include "sim/app/sweeps/workers/isolate.h"
#include "sim/config/load.h"
#include "sim/config/output.h"
#include "sim/config/type.h"

/// Which facts of the schemas of an experiment move a result. A fact is a key of a schema by its
/// way from the experiment, whatever entry of a list or map: "system.accelerator.compute.matrix".
/// Keys of operators have the kind in them: "operator.gemm.m"; those of topologies do not, as most
/// are keys of all. They are read off the schemas, so that one which no model reads does not go
/// unnoticed.
namespace orrery::facts {

/// A file that is there as long as the object, and no other process writes: tests run side by side.
class TextFile {
 public:
  TextFile(const std::string& name, const std::string& text)
      : path_(::testing::TempDir() + std::to_string(::getpid()) + "_" + name) {
    std::ofstream(path_) << text;
  }
  ~TextFile() { std::remove(path_.c_str()); }
  TextFile(const TextFile&) = delete;
  TextFile& operator=(const TextFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using config::Record;
using config::Type;
using config::TypeKind;

using FactTypes = std::map<std::string, const Type*>;

inline std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "." + key;
}

/// The way to the keys of one of the structs that a map may be.
inline std::string below_kind(const std::string& path, const std::string& kind) {
  return path.ends_with("system.scale_up") ? path : below(path, kind);
}

inline void add_facts(const Record& record, const std::string& path, FactTypes& facts);

inline void add_facts(const Type& type, const std::string& path, FactTypes& facts) {
  if (type.element != nullptr) {
    add_facts(*type.element, path, facts);
  } else if (type.kind == TypeKind::kRecord) {
    add_facts(type.record(), path, facts);
  } else if (type.kind == TypeKind::kChoice) {
    const config::Choices& choices = type.choices();
    for (const auto& [name, record] : choices.records) {
      const std::string way = below_kind(path, name);
      add_facts(record(), way, facts);
      auto tag = facts.extract(below(way, choices.tag));
      facts.emplace(below(path, choices.tag), tag.mapped());
    }
  } else {
    facts.emplace(path, &type);
  }
}

inline void add_facts(const Record& record, const std::string& path, FactTypes& facts) {
  for (const config::Field& field : record.fields())
    add_facts(*field.type, below(path, field.key), facts);
}

/// All facts of an experiment with their types: system, accelerator, links, protocols, model,
/// operators.
inline const FactTypes& all_facts() {
  static const FactTypes facts = [] {
    FactTypes all;
    for (const auto& [kind, info] : ExperimentKinds::items()) add_facts(info.record(), "", all);
    return all;
  }();
  return facts;
}

/// Where a figure is from is no fact; that of most is not even a key of a schema (Fact::source).
inline bool is_citation(const std::string& fact) { return fact.ends_with(".source"); }

/// The keys that may move nothing, with their facts.
inline const std::map<std::string, std::set<std::string>>& listed() {
  static const std::map<std::string, std::set<std::string>> keys = {
      // Texts for readers.
      {"name",
       {"name", "system.name", "system.accelerator.name", "serving.fleet.name", "software.name"}},
      {"software", {"software.software"}},
      {"model", {"model.model"}},
      {"layer_model", {"layer_model.layer_model"}},
      {"protocols", {"system.scale_up.protocols.protocols"}},
      {"architecture", {"system.accelerator.architecture"}},
      {"year", {"system.accelerator.year"}},
      {"kind",
       {"system.accelerator.memory.kind", "system.accelerator.scale_up.kind",
        "system.accelerator.scale_out.kind", "system.accelerator.host_link.kind"}},
      {"memory_kind", {"system.host.memory_kind"}},
      {"approximations", {"system.accelerator.approximations"}},
      {"remarks", {"system.remarks"}},
      // Published figures that only tables print.
      {"matrix_inference", {"system.accelerator.compute.matrix_inference"}},
      {"multiply_add", {"system.accelerator.energy.multiply_add"}},
      {"nameplate_power", {"system.nameplate_power"}},
      {"processors", {"system.host.processors"}},
      {"links", {"system.accelerator.scale_out.links", "system.accelerator.host_link.links"}},
      {"cube", {"system.scale_up.cube"}},
      // Of the comparison with measured tables.
      {"one_shot_limit", {"system.scale_up.protocols.one_shot_limit"}},
  };
  return keys;
}

inline bool is_listed(const std::string& fact) {
  if (fact.starts_with("layer_model.layers.") && fact.ends_with(".name")) return true;
  // What is published of the machine that was built of a system.
  if (fact.starts_with("system.installation.")) return true;
  // Published results that a model misses: runs print them.
  if (fact.starts_with("system.accelerator.known_errors.")) return true;
  return std::any_of(listed().begin(), listed().end(),
                     [&](const auto& key) { return key.second.contains(fact); });
}

/// Keys that a struct has from another one, or by a member of the same type: one way is enough.
inline bool is_told_elsewhere(const std::string& fact) {
  const auto has = [&](const char* text) { return fact.find(text) != std::string::npos; };
  for (const char* part : {"system.", "parallel.", "speculative.model."})
    if (fact.starts_with(std::string("serving.fleet.") + part)) return true;
  if (has(".turns.uniform") || has(".turns.lognormal") || has(".turns.empirical")) return true;
  // Those of a served group; steps tell what engines fuse.
  if (fact.starts_with("speculative.")) return true;
  if (fact.starts_with("engine.") && !fact.starts_with("engine.vllm.kernels.") &&
      !fact.starts_with("engine.vllm.all_reduce."))
    return true;
  if (fact.starts_with("serving.") && (has(".kernels.") || has(".all_reduce."))) return true;
  if (has(".engine.") && !has(".engine.vllm.") && has(".host.")) return true;
  return fact.starts_with("serving.workload.") && !has(".poisson.") &&
         (has(".input.") || has(".output.") || has(".seed") || has(".rate") || has(".adapters."));
}

/// The part of the experiment whose test is about a fact; "" where no other one is.
inline std::string part_of(const std::string& fact) {
  if (is_told_elsewhere(fact)) return "elsewhere";
  if (fact == "algorithm" || fact == "durations" || fact == "scale" || fact.starts_with("graph."))
    return "graph.";
  for (const char* part :
       {"system.accelerator.", "system.scale_up.protocols.", "system.scale_up.pcie.",
        "system.scale_up.", "system.", "collective.", "operator.", "serving.", "layer_model."})
    if (fact.starts_with(part)) return part;
  return "";
}

/// The fact that a value of a configuration is one of.
inline std::string fact_of(const std::string& leaf, const config::Node& node) {
  const Type* type = nullptr;
  const Record* record = Experiment::choices().record_of(node);
  const config::Node* here = &node;
  std::string fact, key;
  for (std::istringstream keys(leaf); std::getline(keys, key, '.');) {
    if (type != nullptr) {  // an entry of a list or map
      type = type->element;
    } else {
      type = record->find(key)->type;
      fact = below(fact, key);
    }
    here = here != nullptr ? here->at_path(key) : nullptr;
    while (type->kind == TypeKind::kOptional || type->kind == TypeKind::kFact) type = type->element;
    if (type->kind == TypeKind::kChoice) {
      fact = below_kind(fact, type->choices().name_in(*here));
      record = type->choices().record_of(*here);
    } else if (type->kind == TypeKind::kRecord) {
      record = &type->record();
    } else {
      continue;
    }
    type = nullptr;
  }
  return fact;
}

/// An experiment that is simulated with one fact after the other changed.
struct Probe {
  std::vector<std::string> about;  ///< facts, or what they begin with: those that it may move
  std::string text;
  std::vector<std::string> set = {};
};

/// A change that no single value makes: "mesh" needs no torus, "torus" does.
struct Change {
  std::string fact;
  std::string text;
  std::vector<std::string> set;
};

inline LoadedExperiment load(const std::string& text, const std::vector<std::string>& set) {
  static const config::Library library(ORRERY_SOURCE_DIR "/configs");
  config::Diagnostics diagnostics;
  return load_experiment(config::parse_yaml(text, "probe.yaml", diagnostics), set, diagnostics,
                         library);
}

inline std::string lines_of(const std::string& what, const std::function<std::string()>& work) {
  const auto outcome = run_isolated(work);
  if (const Failure* failure = std::get_if<Failure>(&outcome)) {
    ADD_FAILURE() << what << ": " << failure->message;
    return {};
  }
  return std::get<std::string>(outcome);
}

inline std::set<std::string> split(const std::string& text) {
  std::set<std::string> lines;
  std::string line;
  for (std::istringstream rest(text); std::getline(rest, line);) lines.insert(line);
  return lines;
}

/// Those of `wanted` that a probe is about and for which trying other values gives that answer.
inline std::set<std::string> answering(Trials::Answer answer, const Probe& probe,
                                       const std::set<std::string>& wanted) {
  const auto is_about = [&](const std::string& fact) {
    return std::any_of(probe.about.begin(), probe.about.end(),
                       [&](const std::string& start) { return fact.starts_with(start); });
  };
  return split(lines_of(probe.text, [&] {
    const LoadedExperiment loaded = load(probe.text, probe.set);
    Trials trials(loaded);
    std::set<std::string> found;
    std::string text;
    for (const config::Leaf& leaf : loaded.leaves()) {
      const std::string fact = fact_of(leaf.path, loaded.node);
      if (!wanted.contains(fact) || found.contains(fact) || !is_about(fact)) continue;
      if (trials.examine(leaf) != answer) continue;
      found.insert(fact);
      text += fact + "\n";
    }
    return text;
  }));
}

/// Metrics, classes and links of a result, or why a model has none of what was read without fault.
inline std::string result_of(const std::string& text, const std::vector<std::string>& set) {
  return lines_of(text, [&] {
    try {
      const LoadedExperiment loaded = load(text, set);
      RunRecord record = simulate(loaded);
      record.identity.clear();
      record.name.clear();
      record.base = nullptr;
      return to_json(record).dump() + result_digest(record);
    } catch (const config::ConfigError& error) {
      return std::string(error.what());
    }
  });
}

/// Demands that each fact of a part moves something in one of the probes or changes.
inline void expect_that_all_move(const std::string& part, const std::vector<Probe>& probes,
                                 const std::vector<Change>& changes) {
  // Calibrations are read here, and not by each of the processes that follow.
  if (!probes.empty()) simulate(load(probes.front().text, probes.front().set));
  std::set<std::string> left;
  for (const auto& [fact, type] : all_facts())
    if (part_of(fact) == part && !is_listed(fact) && !is_citation(fact)) left.insert(fact);
  const std::size_t all = left.size();
  std::map<std::string, std::string> unchanged;  // results by text
  for (const Change& change : changes) {
    EXPECT_TRUE(left.contains(change.fact)) << change.fact << " is no fact of " << part;
    auto known = unchanged.find(change.text);
    if (known == unchanged.end())
      known = unchanged.emplace(change.text, result_of(change.text, {})).first;
    if (known->second != result_of(change.text, change.set)) left.erase(change.fact);
  }
  for (const Probe& probe : probes)
    for (const std::string& fact : answering(Trials::Answer::kOther, probe, left)) left.erase(fact);
  std::string still;
  for (const std::string& fact : left) still += "\n  " + fact;
  EXPECT_TRUE(left.empty()) << "facts that move nothing:" << still;
  std::cout << part << "*: " << all - left.size() << " of " << all << " facts move a result\n";
}

}  // namespace orrery::facts
