// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/completion.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/app/cli/verb.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/config/output.h"
#include "sim/serving/engine_release.h"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

/// The options of a verb, to be told instead of parsed.
class ToldOptions final : public Options {
 public:
  void positional(const std::string&, std::string&, const std::string&) override {}
  void positionals(const std::string&, Words&, const std::string&) override {}
  void optional_positional(const std::string&, std::string&, const std::string&) override {}
  void optional_positionals(const std::string&, Words&, const std::string&) override {}
  void option(const std::string& names, std::string&, const std::string&) override {
    add(names, true);
  }
  void options(const std::string& names, Words&, const std::string&) override { add(names, true); }
  void repeatable(const std::string& names, Words&, const std::string&) override {
    add(names, true);
  }
  void number(const std::string& names, int&, const std::string&, int, int) override {
    add(names, true);
  }
  void choice(const std::string& names, std::string&, const std::string&,
              const Words& words) override {
    add(names, true, words);
  }
  void flag(const std::string& names, bool&, const std::string&) override { add(names, false); }
  void excludes(const std::string&, const Words&) override {}

  struct Told {
    bool has_value = false;
    Words words = {};  ///< values of a choice
  };
  std::map<std::string, Told> told = {{"--help", {}}};

 private:
  void add(const std::string& names, bool has_value, const Words& words = {}) {
    std::istringstream each(names);
    for (std::string name; std::getline(each, name, ',');) told[name] = {has_value, words};
  }
};

Words names_in(const Answer& answer) {
  Words names;
  for (const auto& entry : answer.json) names.push_back(entry.at("name").get<std::string>());
  return names;
}

/// Kinds of what can be described; behind a kind its names.
Words of_describe(const Words& before) {
  Words kinds = names_in(describe({}));
  if (before.empty()) return kinds;
  const bool known = std::any_of(kinds.begin(), kinds.end(), [&](const std::string& kind) {
    return kind == before[0] || kind == before[0] + "s";
  });
  return known ? names_in(describe({before[0]})) : Words();
}

Words of_schema(const Words& before) {
  Words kinds;
  if (!before.empty()) return kinds;
  for (const auto& [name, kind] : FileKinds::items())
    if (kind.entry.schema) kinds.push_back(name);
  return kinds;
}

/// Entries of the library, or enumerators, that a key of an experiment may have.
Words values_of(const std::string& path) {
  const config::Library& library = config::default_library();
  if (path == "system") return library.names("systems");
  if (path == "model") return library.names("models");
  if (path == "software") {
    Words names = library.names("software");
    std::erase_if(names, is_engine_release);
    return names;
  }
  Words values;
  for (const auto& [kind, info] : ExperimentKinds::items()) {
    for (const config::KeyHelp& key : config::describe_keys(info.record())) {
      constexpr std::string_view kOneOf = "one of ";
      if (key.path != path || !key.type.starts_with(kOneOf)) continue;
      std::istringstream each(key.type.substr(kOneOf.size()));
      for (std::string value; std::getline(each >> std::ws, value, ',');) values.push_back(value);
    }
  }
  return values;
}

/// `path=value` of an experiment: its keys, then what one may be.
Words of_set(const std::string& begun) {
  Words words;
  const std::size_t equals = begun.find('=');
  if (equals != std::string::npos) {
    const std::string path = begun.substr(0, equals);
    for (const std::string& value : values_of(path))
      words.push_back(std::string(path).append("=").append(value));
    return words;
  }
  for (const auto& [kind, info] : ExperimentKinds::items())
    for (const config::KeyHelp& key : config::describe_keys(info.record()))
      if (key.path.find_first_of("<[") == std::string::npos) words.push_back(key.path + "=");
  return words;
}

/// What may follow the words of a verb.
Words of_verb(const std::string& name, const VerbRegistry::Item& verb, const Words& before,
              const std::string& begun) {
  ToldOptions options;
  verb.entry(options);
  if (!before.empty()) {
    const auto last = options.told.find(before.back());
    if (before.back() == "--set") return of_set(begun);
    if (last != options.told.end() && last->second.has_value) return last->second.words;
  }
  Words words;
  if (begun.starts_with('-')) {
    for (const auto& [option, told] : options.told) words.push_back(option);
  } else if (name == "describe") {
    words = of_describe(before);
  } else if (name == "schema") {
    words = of_schema(before);
  }
  return words;
}

/// What follows a word in verbs: "" has "run" and "sweep", "sweep" has "run".
Words verbs_after(const std::string& group) {
  Words words;
  const std::string head = group.empty() ? "" : group + " ";
  for (const auto& [name, verb] : all_verbs())
    if (name.starts_with(head) && name.find(' ', head.size()) == std::string::npos)
      words.push_back(name.substr(head.size()));
  return words;
}

Words all_after(const Words& before, const std::string& begun) {
  if (before.empty()) return verbs_after("");
  const auto verbs = all_verbs();
  std::size_t used = 1;
  auto verb = verbs.find(before[0]);
  if (verb != verbs.end() && !verb->second.entry) {
    if (before.size() == 1) return verbs_after(before[0]);
    verb = verbs.find(before[0] + " " + before[1]);
    used = 2;
  }
  if (verb == verbs.end()) return {};
  return of_verb(verb->first, verb->second,
                 Words(before.begin() + static_cast<std::ptrdiff_t>(used), before.end()), begun);
}

}  // namespace

std::vector<std::string> complete(const std::vector<std::string>& words) {
  if (words.empty()) return {};
  const std::string& begun = words.back();
  Words found = all_after(Words(words.begin(), words.end() - 1), begun);
  std::erase_if(found, [&](const std::string& word) { return !word.starts_with(begun); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace orrery
