// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/exit_codes.h"

namespace orrery {

/// What a verb takes from the command line. The values given here are filled in when the line is
/// parsed, so they have to live until the verb has run. The library behind it is known to
/// command_line.cpp alone.
class Options {
 public:
  virtual ~Options() = default;

  /// A word, or all words, without a name in front.
  virtual void positional(const std::string& name, std::string& value, const std::string& help) = 0;
  virtual void positionals(const std::string& name, std::vector<std::string>& values,
                           const std::string& help) = 0;
  /// The same, but they may be left out.
  virtual void optional_positional(const std::string& name, std::string& value,
                                   const std::string& help) = 0;
  virtual void optional_positionals(const std::string& name, std::vector<std::string>& values,
                                    const std::string& help) = 0;
  /// `--name VALUE`. @param names "--output", or several: "-o,--output"
  virtual void option(const std::string& names, std::string& value, const std::string& help) = 0;
  /// `--name VALUE...`, also several times.
  virtual void options(const std::string& names, std::vector<std::string>& values,
                       const std::string& help) = 0;
  /// `--name VALUE`, several times, one value each.
  virtual void repeatable(const std::string& names, std::vector<std::string>& values,
                          const std::string& help) = 0;
  /// A number within bounds.
  virtual void number(const std::string& names, int& value, const std::string& help, int low,
                      int high) = 0;
  /// One of some words.
  virtual void choice(const std::string& names, std::string& value, const std::string& help,
                      const std::vector<std::string>& words) = 0;
  virtual void flag(const std::string& names, bool& value, const std::string& help) = 0;
  /// Options that may not stand beside another one.
  virtual void excludes(const std::string& name, const std::vector<std::string>& others) = 0;

  /// `--json`, which every verb has.
  void json(bool& value) { flag("--json", value, "print JSON"); }
  /// `--set path=value`.
  void set(std::vector<std::string>& values) {
    repeatable("--set", values, "path=value, laid over the file; repeatable");
  }
};

/// What the command line asks for, ready to be done.
using Command = std::function<ExitCode()>;

/// A verb of the command line.
struct Verb {
  std::string help;                               ///< one line
  std::function<Command(Options& options)> take;  ///< null: a group of verbs
};
/// By name: "run", "validate operators".
const std::map<std::string, Verb>& verbs();

void register_verb(const std::string& name, Verb verb);

/// A file adds a verb with one such object. `Arguments` has `void take(Options&)` and
/// `ExitCode run() const`.
template <class Arguments>
class RegisterVerb {
 public:
  RegisterVerb(const std::string& name, const std::string& help) {
    register_verb(name, {help, [](Options& options) -> Command {
                           const auto arguments = std::make_shared<Arguments>();
                           arguments->take(options);
                           return [arguments] { return arguments->run(); };
                         }});
  }
};

/// Names what the verbs that begin with a word have in common: "validate".
class RegisterVerbGroup {
 public:
  RegisterVerbGroup(const std::string& name, const std::string& help) {
    register_verb(name, {help, nullptr});
  }
};

}  // namespace orrery
