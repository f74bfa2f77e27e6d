// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <algorithm>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/app/cli/command_line.h"
#include "sim/app/experiments/core/experiment.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/describe/describe.h"
#include "sim/config/output.h"
#include "sim/serving/engine_release.h"
#include "sim/units/comma_separated.h"

namespace orrery {
namespace {

using Words = std::vector<std::string>;

/// An option of a verb that has a value, or a flag.
struct ToldOption {
  bool has_value = false;
  Words words = {};  ///< values of a choice
};

std::map<std::string, ToldOption> told_options(const Options& options) {
  std::map<std::string, ToldOption> told = {{"--help", {}}};
  for (const Option& option : options.all)
    for (const std::string_view name : comma_separated(option.names))
      if (name.starts_with('-'))
        told[std::string(name)] = {!std::holds_alternative<bool*>(option.value), option.words};
  return told;
}

Words names_in(const Answer& answer) {
  Words names;
  for (const auto& entry : answer.json) names.push_back(entry.at("name").get<std::string>());
  return names;
}

/// Kinds of what can be described; behind a kind its names.
Words of_describe(const Words& before) {
  Words kinds = names_in(describe({}));
  if (before.empty()) return kinds;
  const bool known = std::ranges::any_of(
      kinds, [&](const std::string& kind) { return kind == before[0] || kind == before[0] + "s"; });
  return known ? names_in(describe({before[0]})) : Words();
}

Words of_schema(const Words& before) {
  Words kinds;
  for (const auto& [name, kind] : FileKinds::items())
    if (kind.entry.schema && before.empty()) kinds.push_back(name);
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
      for (const std::string_view value :
           comma_separated(std::string_view(key.type).substr(kOneOf.size())))
        values.emplace_back(value);
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
      words.push_back(fmt::format("{}={}", path, value));
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
  Options options;
  command_of(verb.entry, options);
  const std::map<std::string, ToldOption> told = told_options(options);
  if (!before.empty()) {
    const auto last = told.find(before.back());
    if (before.back() == "--set") return of_set(begun);
    if (last != told.end() && last->second.has_value) return last->second.words;
  }
  Words words;
  if (begun.starts_with('-')) {
    for (const auto& [option, value] : told) words.push_back(option);
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
  for (const auto& [name, verb] : VerbRegistry::items())
    if (name.starts_with(head) && name.find(' ', head.size()) == std::string::npos)
      words.push_back(name.substr(head.size()));
  return words;
}

Words all_after(const Words& before, const std::string& begun) {
  if (before.empty()) return verbs_after("");
  const auto& verbs = VerbRegistry::items();
  std::size_t used = 1;
  auto verb = verbs.find(before[0]);
  if (verb != verbs.end() && !verb->second.entry.command && !verb->second.entry.question) {
    if (before.size() == 1) return verbs_after(before[0]);
    verb = verbs.find(before[0] + " " + before[1]);
    used = 2;
  }
  if (verb == verbs.end()) return {};
  return of_verb(verb->first, verb->second,
                 Words(before.begin() + static_cast<std::ptrdiff_t>(used), before.end()), begun);
}

/// What may stand in place of the last of some words of a command line, sorted: verbs, options,
/// words of a choice, what `describe` knows, keys and values of `--set`. Empty: files, or anything.
/// @param words without the name of the program; the last may be empty or the beginning of a word
Words complete(const Words& words) {
  if (words.empty()) return {};
  const std::string& begun = words.back();
  Words found = all_after(Words(words.begin(), words.end() - 1), begun);
  std::erase_if(found, [&](const std::string& word) { return !word.starts_with(begun); });
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// Both shells ask the program for what fits; where it has nothing to say, they offer files. A word
/// that ends in "=" goes on: no space behind it.
constexpr const char* kBash = R"sh(_orrery() {
  local word words=()
  # bash takes "path=value" for three words.
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if [ ${#words[@]} -gt 0 ] && { [ "$word" = "=" ] || [[ ${words[-1]} == ?*= ]]; }; then
      words[-1]+=$word
    else
      words+=("$word")
    fi
  done
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" completion words -- "${words[@]}" 2>/dev/null)
  if [ ${#COMPREPLY[@]} -eq 0 ]; then
    compopt -o default 2>/dev/null
  elif [[ ${COMPREPLY[0]} == *= ]]; then
    compopt -o nospace 2>/dev/null
  fi
  [[ ${words[-1]} == *=* && $COMP_WORDBREAKS == *=* ]] && COMPREPLY=("${COMPREPLY[@]#*=}")
  return 0
}
complete -F _orrery orrery
)sh";

constexpr const char* kZsh = R"sh(_orrery() {
  local -a found
  found=(${(f)"$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)"})
  if (( ${#found} == 0 )); then
    _files
  else
    compadd -Q -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
  fi
}
compdef _orrery orrery
)sh";

struct CompletionArguments {
  std::string shell;
  std::vector<std::string> words;

  void take(Options& options) {
    options.positional("SHELL", shell,
                       "bash or zsh: a script for it; words: what may stand for the last of WORDS");
    options.optional_positionals("WORDS", words, "words of a command line, behind --");
  }

  ExitCode run() const {
    if (shell == "bash" || shell == "zsh") {
      std::cout << (shell == "bash" ? kBash : kZsh);
    } else if (shell == "words") {
      for (const std::string& word : complete(words)) std::cout << word << "\n";
    } else {
      throw UsageError(fmt::format("no completion for '{}'; there are: bash, zsh, words", shell));
    }
    return ExitCode::kOk;
  }
};

const RegisterVerb<CompletionArguments> registered_completion(
    "completion", "print a script that completes commands: eval \"$(orrery completion bash)\"");

}  // namespace
}  // namespace orrery
