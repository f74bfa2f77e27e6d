// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/questions/base/options.h"
#include "sim/config/registry.h"

namespace orrery {

/// What the command line asks for, ready to be done.
using Command = std::function<ExitCode()>;

/// Functions that begin a command from its options, by verb: "run", "graph dot". A group of verbs
/// ("graph") has none, and a help of what they have in common.
using VerbRegistry = Registry<std::function<Command(Options& options)>>;
/// Verbs, groups of them and questions, by name.
std::map<std::string, VerbRegistry::Item> all_verbs();

/// A file adds a verb with one such object. `Arguments` has `void take(Options&)` and
/// `ExitCode run() const`.
template <class Arguments>
struct RegisterVerb : VerbRegistry::Register {
  RegisterVerb(const std::string& name, const std::string& help)
      : Register(name, help, [](Options& options) -> Command {
          const auto arguments = std::make_shared<Arguments>();
          arguments->take(options);
          return [arguments] { return arguments->run(); };
        }) {}
};

}  // namespace orrery
