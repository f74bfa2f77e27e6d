// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "sim/app/cli/answer_text.h"
#include "sim/app/cli/printable_stream.h"
#include "sim/app/cli/verb.h"
#include "sim/app/questions/base/question.h"
#include "sim/results/version.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// Texts that are given are not empty: an empty one would stand for an option that is not there.
std::string fault_of_text(const std::string& text) { return text.empty() ? "is empty" : ""; }

/// The options of a verb in the library that parses them.
class ParsedOptions final : public Options {
 public:
  explicit ParsedOptions(CLI::App& app) : app_(app) {}

  void positional(const std::string& name, std::string& value, const std::string& help) override {
    app_.add_option(name, value, help)->required()->check(fault_of_text);
  }
  void positionals(const std::string& name, std::vector<std::string>& values,
                   const std::string& help) override {
    app_.add_option(name, values, help)->required()->check(fault_of_text);
  }
  void optional_positional(const std::string& name, std::string& value,
                           const std::string& help) override {
    app_.add_option(name, value, help)->check(fault_of_text);
  }
  void optional_positionals(const std::string& name, std::vector<std::string>& values,
                            const std::string& help) override {
    app_.add_option(name, values, help);
  }
  void option(const std::string& names, std::string& value, const std::string& help) override {
    app_.add_option(names, value, help)->check(fault_of_text);
  }
  void options(const std::string& names, std::vector<std::string>& values,
               const std::string& help) override {
    app_.add_option(names, values, help)->check(fault_of_text);
  }
  void repeatable(const std::string& names, std::vector<std::string>& values,
                  const std::string& help) override {
    app_.add_option(names, values, help)->allow_extra_args(false)->check(fault_of_text);
  }
  void number(const std::string& names, int& value, const std::string& help, int low,
              int high) override {
    app_.add_option(names, value, help)->check(CLI::Range(low, high));
  }
  void choice(const std::string& names, std::string& value, const std::string& help,
              const std::vector<std::string>& words) override {
    app_.add_option(names, value, help)->check(CLI::IsMember(words));
  }
  void flag(const std::string& names, bool& value, const std::string& help) override {
    app_.add_flag(names, value, help);
  }
  void excludes(const std::string& name, const std::vector<std::string>& others) override {
    for (const std::string& other : others) app_.get_option(name)->excludes(app_.get_option(other));
  }
  void examples(const std::vector<std::string>& lines) override {
    std::string text = "Examples:";
    for (const std::string& line : lines) text += "\n  orrery " + line;
    app_.footer(text);
  }

 private:
  CLI::App& app_;
};

/// A question as a verb, which prints the answer.
VerbRegistry::Item verb_of(const QuestionRegistry::Item& item) {
  return {item.help, [&question = item.entry](Options& options) -> Command {
            const auto answer = question.take(options);
            const auto json = std::make_shared<bool>(false);
            options.json(*json);
            const auto csv = std::make_shared<bool>(false);
            if (question.has_csv) {
              options.flag("--csv", *csv, "print CSV");
              options.excludes("--csv", {"--json"});
            }
            return [answer, json, csv] {
              const Answer given = answer();
              std::cerr << given.warnings;
              if (*csv) {
                print_csv(given.csv, std::cout);
              } else {
                print_answer(given, *json);
              }
              return given.code;
            };
          }};
}

/// Adds the verbs to the parser, groups before what is in them: "validate" sorts before "validate
/// operators". Each sets `chosen` when it is the one that was parsed.
void add_verbs(CLI::App& app, Command& chosen) {
  for (const auto& [name, verb] : all_verbs()) {
    const std::size_t space = name.find(' ');
    CLI::App& parent =
        space == std::string::npos ? app : *app.get_subcommand(name.substr(0, space));
    CLI::App* parsed = parent.add_subcommand(
        space == std::string::npos ? name : name.substr(space + 1), verb.help);
    if (!verb.entry) {
      parsed->require_subcommand(1);
      continue;
    }
    ParsedOptions options(*parsed);
    parsed->callback([command = verb.entry(options), &chosen] { chosen = command; });
  }
}

/// Says what the words may have meant, if they begin with no verb. The library itself only says
/// that a subcommand is missing.
bool is_unknown(const CLI::App& app, std::span<const std::string> words) {
  if (words.empty()) return false;
  const std::string& verb = words.front();
  std::vector<std::string> names;
  for (const CLI::App* known : app.get_subcommands({})) names.push_back(known->get_name());
  if (names.empty() || verb.starts_with('-')) return false;
  if (std::find(names.begin(), names.end(), verb) != names.end())
    return is_unknown(*app.get_subcommand(verb), words.subspan(1));
  const std::string meant = nearest_name(verb, names);
  std::cerr << "error: unknown command '" << verb << "'"
            << (meant.empty() ? "" : "; did you mean '" + meant + "'?") << "\nthere are:";
  for (const std::string& known : names) std::cerr << " " << known;
  std::cerr << "\n";
  return true;
}

/// Says which options the unknown ones of a line may have meant.
void suggest_options(const CLI::App& app) {
  const CLI::App* verb = &app;
  while (!verb->get_subcommands().empty()) verb = verb->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::Option* option : verb->get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  for (const std::string& word : app.remaining(true)) {
    if (!word.starts_with("--")) continue;
    const std::string meant = nearest_name(word.substr(0, word.find('=')), names);
    if (!meant.empty()) std::cerr << "instead of " << word << " did you mean " << meant << "?\n";
  }
}

/// Parses the words into `chosen`. @return an exit code when the process is to end at once
std::optional<ExitCode> parse(std::vector<std::string> words, Command& chosen) {
  CLI::App app{"Orrery simulates AI accelerators and clusters running language models."};
  app.name("orrery");
  app.set_version_flag("--version", "orrery " + std::string(kEngineVersion));
  app.require_subcommand(1);
  add_verbs(app, chosen);
  if (is_unknown(app, words)) return ExitCode::kUsage;
  std::reverse(words.begin(), words.end());  // as the library takes a vector
  try {
    app.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    const bool asked_for_help = error.get_exit_code() == 0;
    app.exit(error, std::cout, std::cerr);
    if (!asked_for_help) suggest_options(app);
    return asked_for_help ? ExitCode::kOk : ExitCode::kUsage;
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, VerbRegistry::Item> all_verbs() {
  std::map<std::string, VerbRegistry::Item> all = VerbRegistry::items();
  for (const auto& [name, question] : QuestionRegistry::items())
    all.emplace(name, verb_of(question));
  return all;
}

ExitCode run_command_line(std::vector<std::string> words) {
  const PrintableStream out(std::cout), errors(std::cerr);
  try {
    Command chosen;
    if (const auto ended = parse(std::move(words), chosen)) return *ended;
    const ExitCode code = chosen();
    std::cout.flush();
    if (!std::cout) throw ResourceError("cannot write to standard output");
    return code;
  } catch (...) {
    const Failure failure = classify(std::current_exception());
    std::cerr << failure.message << (failure.message.ends_with('\n') ? "" : "\n");
    return failure.code;
  }
}

}  // namespace orrery
