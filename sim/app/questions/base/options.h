// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace orrery {

/// What a verb or a question takes from the command line. The values given here are filled in when
/// the line is parsed, so they have to live until the verb has run. The library behind it is known
/// to cli/command_line.cpp alone.
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

  /// Command lines that show what it is for; they stand below its help.
  virtual void examples(const std::vector<std::string>& lines) { static_cast<void>(lines); }

  /// `--columns`, which every verb with a table of points has.
  void columns(std::string& value) {
    option("--columns", value,
           "columns of the table, with commas: metrics, quantiles, paths of the configuration");
  }
  /// `--json`, which every verb has.
  void json(bool& value) { flag("--json", value, "print JSON"); }
  /// `--set path=value`.
  void set(std::vector<std::string>& values) {
    repeatable("--set", values, "path=value, laid over the file; repeatable");
  }
};

}  // namespace orrery
