// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/options.h"

namespace orrery {

/// What the command line asks for, ready to be done.
using Command = std::function<ExitCode()>;

/// A verb of the command line.
struct Verb {
  std::string help;                               ///< one line
  std::function<Command(Options& options)> take;  ///< null: a group of verbs
};
/// @param name "run", "validate operators"
void register_verb(const std::string& name, Verb verb);
/// Verbs, groups of them and questions, by name.
std::map<std::string, Verb> all_verbs();

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
