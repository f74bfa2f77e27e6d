// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace orrery {

/// One thing that a verb or a question takes from the command line.
struct Option {
  std::string names;  ///< "--output", or several: "-o,--output"; of a word its place: "STORE"
  std::string help;
  std::variant<std::string*, std::vector<std::string>*, int*, bool*> value;
  bool required = false;
  bool may_be_empty = false;            ///< texts may be ""
  bool one_each = false;                ///< several times, one value each
  std::pair<int, int> bounds = {};      ///< bounds of a number
  std::vector<std::string> words = {};  ///< words that a text is one of; empty: it may be any
};

/// All that a verb or a question takes. The values given here are filled in when the line is
/// parsed, so they have to live until the verb has run. The library behind it is known to
/// cli/command_line.cpp alone.
struct Options {
  using Text = const std::string&;
  using Texts = std::vector<std::string>;

  std::vector<Option> all;
  std::vector<std::pair<std::string, Texts>> exclusions;
  Texts example_lines;

  /// A word, or all words, without a name in front.
  void positional(Text name, std::string& value, Text help) {
    all.push_back({.names = name, .help = help, .value = &value, .required = true});
  }
  void positionals(Text name, Texts& values, Text help) {
    all.push_back({.names = name, .help = help, .value = &values, .required = true});
  }
  /// The same, but they may be left out.
  void optional_positionals(Text name, Texts& values, Text help) {
    all.push_back({.names = name, .help = help, .value = &values, .may_be_empty = true});
  }
  /// `--name VALUE`; without dashes a word that may be left out.
  void option(Text names, std::string& value, Text help) {
    all.push_back({.names = names, .help = help, .value = &value});
  }
  /// `--name VALUE...`, also several times.
  void options(Text names, Texts& values, Text help) {
    all.push_back({.names = names, .help = help, .value = &values});
  }
  /// `--name VALUE`, several times, one value each.
  void repeatable(Text names, Texts& values, Text help) {
    all.push_back({.names = names, .help = help, .value = &values, .one_each = true});
  }
  /// A number within bounds.
  void number(Text names, int& value, Text help, int low, int high) {
    all.push_back({.names = names, .help = help, .value = &value, .bounds = {low, high}});
  }
  /// One of some words.
  void choice(Text names, std::string& value, Text help, const Texts& words) {
    all.push_back({.names = names, .help = help, .value = &value, .words = words});
  }
  void flag(Text names, bool& value, Text help) {
    all.push_back({.names = names, .help = help, .value = &value});
  }
  /// Options that may not stand beside another one.
  void excludes(Text name, const Texts& others) { exclusions.emplace_back(name, others); }
  /// Command lines that show what it is for; they stand below its help.
  void examples(const Texts& lines) { example_lines = lines; }

  /// `--columns`, which every verb with a table of points has.
  void columns(std::string& value) {
    option("--columns", value,
           "columns of the table, with commas: metrics, quantiles, paths of the configuration");
  }
  /// `--json`, which every verb has.
  void json(bool& value) { flag("--json", value, "print JSON"); }
  /// `--set path=value`.
  void set(Texts& values) {
    repeatable("--set", values, "path=value, laid over the file; repeatable");
  }
};

}  // namespace orrery
