// SPDX-License-Identifier: Apache-2.0
#include "sim/app/questions/describe/describe.h"

#include <fmt/core.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/questions/describe/facts.h"
#include "sim/app/sweeps/sweep_config.h"
#include "sim/config/output.h"
#include "sim/machine/calibration.h"
#include "sim/machine/system_config.h"
#include "sim/results/json_table.h"
#include "sim/results/metric_table.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"
#include "sim/units/text.h"

namespace orrery {
namespace {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;
using Entries = std::vector<CatalogEntry>;

/// A word that `describe` takes first, with the list and the details behind it.
struct DescribedKind {
  std::string name, singular, help;
  std::function<Answer(const config::Library&)> list;
  std::function<Answer(const Words& names, const config::Library&)> details;
};

[[noreturn]] void refuse(const std::string& what, const std::string& name, const Words& known) {
  const std::string instead = names_instead(name, known);
  throw UsageError(fmt::format("unknown {} '{}'{}{}{}", what, name,
                               did_you_mean(nearest_name(name, known)), instead.empty() ? "" : "\n",
                               instead));
}

Words names_of(const Entries& entries) {
  Words names;
  for (const CatalogEntry& entry : entries) names.push_back(entry.name);
  return names;
}

Answer list(const std::string& title, const Entries& entries) {
  Answer answer{.parts = {}, .json = Json::array()};
  for (const CatalogEntry& entry : entries)
    answer.json.push_back({{"name", entry.name}, {"help", entry.help}});
  answer.add(json_table(answer.json, title + " = name | what it is = help"));
  return answer;
}

void append(Answer& all, const Answer& one) {
  if (!all.parts.empty()) all.add("\n");
  all.add(one);
  all.json.push_back(one.json);
  all.warnings += one.warnings;
}

/// Details of things of a kind; of a file by its path.
Answer describe_entries(const Words& names, const CatalogKind& kind) {
  const Entries entries = kind.entries();
  Answer all{.parts = {}, .json = Json::array()};
  for (const std::string& name : names) {
    Entries files;
    if (kind.of_file && (config::Library::is_path(name) || name.ends_with(".json")))
      files.push_back(kind.of_file(name));
    const std::string& known = files.empty() ? name : files.front().name;
    const Entries& all_known = files.empty() ? entries : files;
    const auto entry = std::ranges::find(all_known, known, &CatalogEntry::name);
    if (entry == all_known.end()) refuse(kind.singular, name, names_of(entries));
    Answer one{.parts = {entry->name + ": " + entry->help + "\n"},
               .json = {{"name", entry->name}, {"help", entry->help}}};
    if (entry->details) {
      const Answer details = entry->details();
      one.add(details);
      one.json["details"] = details.json;
    }
    append(all, one);
  }
  return all;
}

DescribedKind catalog_kind(const CatalogKind& kind) {
  return {
      kind.name, kind.singular, kind.help,
      [kind](const config::Library&) { return list(kind.singular, kind.entries()); },
      [kind](const Words& names, const config::Library&) { return describe_entries(names, kind); }};
}

/// The path of what a name or a path stands for.
std::string located(const std::string& kind, const std::string& what, const std::string& name,
                    const config::Library& library) {
  if (!config::Library::is_path(name)) {
    const Words known = library.names(kind);
    if (std::ranges::find(known, name) == known.end()) refuse(what, name, known);
  }
  return library.locate(kind, name, "");
}

template <class T>
Loaded<T> load(const std::string& kind, const std::string& what, const std::string& name,
               const config::Library& library) {
  return load_with_node<T>(located(kind, what, name, library), library, kind);
}

Answer list_systems(const config::Library& library) {
  Entries entries;
  for (const std::string& name : library.names("systems")) {
    const SystemConfig s = load<SystemConfig>("systems", "system", name, library).object;
    entries.push_back(
        {name, fmt::format("{}, {} x {}", s.name, s.accelerators.value, s.accelerator.name)});
  }
  return list("system", entries);
}

Answer describe_accelerators(const Words& names, const config::Library& library) {
  Answer all{.parts = {}, .json = Json::array()};
  std::vector<std::pair<std::string, config::Node>> devices;
  for (const std::string& name : names) {
    const auto loaded = load<AcceleratorConfig>("accelerators", "accelerator", name, library);
    append(all, describe_accelerator(name, loaded.object, loaded.node));
    devices.emplace_back(name, loaded.node);
  }
  if (names.size() > 1) all.parts = {compare_accelerators(devices)};
  return all;
}

Answer compare_systems(const Words& names, const config::Library& library) {
  std::vector<SystemConfig> systems;
  for (const std::string& name : names)
    systems.push_back(load<SystemConfig>("systems", "system", name, library).object);
  return describe_systems(systems);
}

Answer list_calibrations(const config::Library& library) {
  Entries entries;
  for (const std::string& name : library.names("calibrations")) {
    const Calibration c = load_calibration(library.locate("calibrations", name, ""));
    entries.push_back({name, fmt::format("{} of {}, {} fits, {}", c.model, c.accelerator,
                                         c.fits.size(), c.made_with)});
  }
  return list("calibration", entries);
}

Answer describe_named_calibrations(const Words& names, const config::Library& library) {
  std::vector<Calibration> calibrations;
  for (const std::string& name : names)
    calibrations.push_back(load_calibration(located("calibrations", "calibration", name, library)));
  return describe_calibrations(calibrations);
}

Entries list_metrics() {
  Entries entries;
  for (const auto& [name, metric] : metric_table()) {
    const std::string unit = metric.unit.empty() ? "" : fmt::format(" [{}]", metric.unit);
    entries.push_back(
        {metric.name, fmt::format("{}{} ({})", metric.meaning, unit, metric.experiments)});
  }
  return entries;
}

std::string key_text(const config::KeyHelp& key) {
  if (key.fallback.empty()) return fmt::format("{} ({})", key.help, key.type);
  return fmt::format("{} ({}, {}{})", key.help, key.type,
                     key.fallback == "required" ? "" : "default: ", key.fallback);
}

/// A struct whose keys can be described.
struct KeySource {
  std::string file;  ///< what its files are called: "experiment"
  std::string kind;  ///< kind of such a file where there are several: "training"
  const config::Record* record = nullptr;
};

std::vector<KeySource> key_sources() {
  std::vector<KeySource> sources;
  for (const auto& [kind, info] : ExperimentKinds::items())
    sources.push_back({"experiment", kind, &info.record()});
  sources.push_back({"sweep", "sweep", &SweepConfig::schema().record()});
  return sources;
}

/// One key of a kind of file, and which kinds of them have it.
struct ListedKey {
  CatalogEntry entry;
  std::vector<std::string> kinds;
};

/// The keys of all kinds of one file; a key that several have stands once, unless they say
/// something else of it.
std::vector<ListedKey> keys_of(const std::vector<KeySource>& kinds) {
  std::vector<ListedKey> keys;
  std::map<std::pair<std::string, std::string>, std::size_t> known;
  for (const KeySource& source : kinds) {
    for (const config::KeyHelp& key : config::describe_keys(*source.record)) {
      const std::pair<std::string, std::string> id = {source.file + "." + key.path, key_text(key)};
      const auto [at, added] = known.try_emplace(id, keys.size());
      if (added) keys.push_back({{id.first, id.second}, {}});
      keys[at->second].kinds.push_back(source.kind);
    }
  }
  return keys;
}

Entries list_keys() {
  std::map<std::string, std::vector<KeySource>> files;
  for (const KeySource& source : key_sources()) files[source.file].push_back(source);
  Entries entries;
  for (const auto& [file, kinds] : files) {
    const bool one = file == "experiment";
    entries.push_back({file, one ? "one simulation" : kinds.front().record->help()});
    for (ListedKey& key : keys_of(kinds)) {
      if (key.kinds.size() < kinds.size())
        key.entry.help = fmt::format("{}: {}", comma_joined(key.kinds), key.entry.help);
      entries.push_back(std::move(key.entry));
    }
  }
  return entries;
}

/// The keys of one kind of experiment, or none where no kind is called so. Those of its machine
/// stand apart, under `system`.
Entries keys_of_kind(const std::string& name) {
  Entries entries;
  for (const KeySource& source : key_sources()) {
    if (source.kind != name) continue;
    for (ListedKey& key : keys_of({source}))
      if (!key.entry.name.starts_with(source.file + ".system."))
        entries.push_back(std::move(key.entry));
  }
  return entries;
}

/// The key of a name and all below it.
Entries keys_below(const std::string& name, const Entries& keys) {
  Entries chosen;
  for (const CatalogEntry& key : keys)
    if (key.name == name || key.name.starts_with(name + ".")) chosen.push_back(key);
  return chosen;
}

/// The keys named and all below them; an experiment's also without its name, and all of a kind of
/// experiment.
Answer describe_key_names(const Words& names, const config::Library&) {
  const Entries keys = list_keys();
  Entries chosen;
  for (const std::string& name : names) {
    Entries found = keys_below(name, keys);
    if (found.empty()) found = keys_of_kind(name);
    if (found.empty()) found = keys_below("experiment." + name, keys);
    if (found.empty()) {
      Words known = names_of(keys);  // kinds of experiments may have been meant as well as keys
      for (const KeySource& source : key_sources()) known.push_back(source.kind);
      refuse("key", name, known);
    }
    chosen.insert(chosen.end(), found.begin(), found.end());
  }
  return list("key", chosen);
}

std::vector<DescribedKind> kinds() {
  std::vector<DescribedKind> all = {
      {"accelerators", "accelerator",
       "chips; NAME: every value with its source; NAME...: side by side, with ratios",
       [](const config::Library& library) { return accelerator_table(library); },
       describe_accelerators},
      {"systems", "system", "servers and supernodes; NAME...: side by side, with ratios",
       list_systems, compare_systems}};
  for (const CatalogKind& kind : catalog()) all.push_back(catalog_kind(kind));
  all.push_back(
      {"calibrations", "calibration",
       "fitted parameters of devices; NAME...: their errors; one NAME: parameters and sources too",
       list_calibrations, describe_named_calibrations});
  all.push_back(catalog_kind(
      {"metrics", "metric", "numbers of a result: unit, meaning, experiments", list_metrics}));
  all.push_back(
      {"keys", "key",
       "keys of the configuration files; NAME: those of a kind of experiment, or below a key",
       [](const config::Library&) { return list("key", list_keys()); }, describe_key_names});
  return all;
}

}  // namespace

Answer describe(const std::vector<std::string>& words, const config::Library& library) {
  const std::vector<DescribedKind> all = kinds();
  Entries entries;
  for (const DescribedKind& kind : all) entries.push_back({kind.name, kind.help});
  if (words.empty()) return list("kind", entries);
  const auto kind = std::ranges::find_if(
      all, [&](const DescribedKind& k) { return words[0] == k.name || words[0] == k.singular; });
  if (kind == all.end()) refuse("kind", words[0], names_of(entries));
  if (words.size() == 1) return kind->list(library);
  return kind->details(Words(words.begin() + 1, words.end()), library);
}

}  // namespace orrery
