// SPDX-License-Identifier: Apache-2.0
#include "sim/app/cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <streambuf>
#include <string_view>

#include "sim/app/cli/answer_text.h"
#include "sim/app/questions/base/verb.h"
#include "sim/results/version.h"
#include "sim/units/printable.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

/// While it lives, control characters that are written to a stream of this process come out as
/// printable() has them: names and messages hold what files say, and a terminal obeys it. Lines and
/// tabs stay.
class PrintableStream final : public std::streambuf {
 public:
  explicit PrintableStream(std::ostream& stream) : stream_(stream), behind_(*stream.rdbuf(this)) {}
  ~PrintableStream() override {
    end_character();
    stream_.flush();
    stream_.rdbuf(&behind_);
  }
  PrintableStream(const PrintableStream&) = delete;
  PrintableStream& operator=(const PrintableStream&) = delete;

 protected:
  int_type overflow(int_type c) override {
    if (traits_type::eq_int_type(c, traits_type::eof())) return traits_type::not_eof(c);
    const char one = traits_type::to_char_type(c);
    return write({&one, 1}) ? c : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    return write({text, static_cast<std::size_t>(size)}) ? size : 0;
  }
  int sync() override { return end_character() && behind_.pubsync() == 0 ? 0 : -1; }

 private:
  static constexpr char kC1Lead = '\xC2';  // of control characters of two bytes

  bool write(std::string_view text) {
    if (text.empty()) return true;
    std::string whole = begun_ ? std::string(1, kC1Lead) : std::string();
    whole += text;
    begun_ = whole.back() == kC1Lead;
    if (begun_) whole.pop_back();
    return put(printable(whole, "\n\t"));
  }

  /// Passes on the bytes of a character whose last byte has not arrived.
  bool end_character() {
    const bool begun = begun_;
    begun_ = false;
    return !begun || put({&kC1Lead, 1});
  }

  bool put(std::string_view text) {
    const auto size = static_cast<std::streamsize>(text.size());
    return behind_.sputn(text.data(), size) == size;
  }

  std::ostream& stream_;
  std::streambuf& behind_;
  bool begun_ = false;  ///< the last byte was the first of two
};

/// Texts that are given are not empty: an empty one would stand for an option that is not there.
std::string fault_of_text(const std::string& text) { return text.empty() ? "is empty" : ""; }

/// Adds an option to the library that parses it.
void add(const Option& option, CLI::App& app) {
  const auto add_with = [&](auto* value) {
    using Value = std::decay_t<decltype(*value)>;
    if constexpr (std::is_same_v<Value, bool>) {
      app.add_flag(option.names, *value, option.help);
    } else {
      CLI::Option* added = app.add_option(option.names, *value, option.help);
      added->required(option.required);
      if (option.one_each) added->allow_extra_args(false);
      if constexpr (std::is_same_v<Value, int>) {
        added->check(CLI::Range(option.bounds.first, option.bounds.second));
      } else if (!option.words.empty()) {
        added->check(CLI::IsMember(option.words));
      } else if (!option.may_be_empty) {
        added->check(fault_of_text);
      }
    }
  };
  std::visit(add_with, option.value);
}

void add(const Options& options, CLI::App& app) {
  for (const Option& option : options.all) add(option, app);
  for (const auto& [name, others] : options.exclusions)
    for (const std::string& other : others) app.get_option(name)->excludes(app.get_option(other));
  if (options.example_lines.empty()) return;
  std::string text = "Examples:";
  for (const std::string& line : options.example_lines) text += "\n  orrery " + line;
  app.footer(text);
}

/// Adds the verbs to the parser, groups before what is in them: "validate" sorts before "validate
/// operators". Each sets `chosen` when it is the one that was parsed.
void add_verbs(CLI::App& app, Command& chosen) {
  for (const auto& [name, verb] : VerbRegistry::items()) {
    const std::size_t space = name.find(' ');
    const bool in_group = space != std::string::npos;
    CLI::App& parent = in_group ? *app.get_subcommand(name.substr(0, space)) : app;
    CLI::App* parsed = parent.add_subcommand(in_group ? name.substr(space + 1) : name, verb.help);
    if (!verb.entry.command && !verb.entry.question) {
      parsed->require_subcommand(1);
      continue;
    }
    Options options;
    parsed->callback([command = command_of(verb.entry, options), &chosen] { chosen = command; });
    add(options, *parsed);
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
  if (std::ranges::find(names, verb) != names.end())
    return is_unknown(*app.get_subcommand(verb), words.subspan(1));
  std::cerr << "error: unknown command '" << verb << "'" << did_you_mean(nearest_name(verb, names))
            << "\nthere are:";
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

Command command_of(const Verb& verb, Options& options) {
  if (verb.command) return verb.command(options);
  const auto answer = verb.question(options);
  const auto json = std::make_shared<bool>(false), csv = std::make_shared<bool>(false);
  options.json(*json);
  if (verb.has_csv) {
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
}

ExitCode run_command_line(std::vector<std::string> words) {
  PrintableStream out(std::cout), errors(std::cerr);
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
