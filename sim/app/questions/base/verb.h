// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "sim/app/questions/base/options.h"
#include "sim/config/registry.h"
#include "sim/results/answer.h"

namespace orrery {

/// One or two words of the command line, "run" or "graph dot": a command or a question. A group of
/// them, "graph", is neither, and has a help of what they have in common.
struct Verb {
  /// Gives what is to be done once `options` have been filled in.
  std::function<std::function<ExitCode()>(Options& options)> command = nullptr;
  /// Gives what answers then. The answer is data, printed as text or, with `--json`, as JSON.
  std::function<std::function<Answer()>(Options& options)> question = nullptr;
  bool has_csv = false;  ///< the answer is a table, and `--csv` prints it
};
using VerbRegistry = Registry<Verb>;

/// Lets `Arguments` take its options, and calls one of its functions once they are filled in.
template <class Arguments, class Result>
std::function<std::function<Result()>(Options&)> taking(Result (Arguments::*function)() const) {
  return [function](Options& options) -> std::function<Result()> {
    const auto arguments = std::make_shared<Arguments>();
    arguments->take(options);
    return [arguments, function] { return (*arguments.*function)(); };
  };
}

/// A file adds a verb with one such object. `Arguments` has `void take(Options&)` and
/// `ExitCode run() const`.
template <class Arguments>
struct RegisterVerb : VerbRegistry::Register {
  RegisterVerb(const std::string& name, const std::string& help)
      : Register(name, help, {.command = taking(&Arguments::run)}) {}
};

/// The same for a question. `Asked` has `void take(Options&)` and `Answer answer() const`.
template <class Asked>
struct RegisterQuestion : VerbRegistry::Register {
  RegisterQuestion(const std::string& name, const std::string& help, bool has_csv = false)
      : Register(name, help, {.question = taking(&Asked::answer), .has_csv = has_csv}) {}
};

}  // namespace orrery
