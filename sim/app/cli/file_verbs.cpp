// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>
#include <iostream>
#include <nlohmann/json.hpp>

#include "sim/app/experiments/core/exit_codes.h"
#include "sim/app/experiments/files/file_kind.h"
#include "sim/app/questions/base/verb.h"
#include "sim/units/comma_separated.h"
#include "sim/units/spelling.h"

namespace orrery {
namespace {

struct CheckArguments {
  std::vector<std::string> files;
  bool json = false;

  void take(Options& options) {
    options.positionals("FILE", files,
                        "experiments, sweeps, systems, accelerators, models, published rows");
    options.json(json);
  }

  ExitCode run() const {
    ExitCode code = ExitCode::kOk;
    nlohmann::ordered_json results = nlohmann::ordered_json::array();
    for (const std::string& file : files) {
      std::string error;
      try {
        std::cerr << FileKinds::find(file_kind(file))->check(file);
      } catch (...) {
        const Failure failure = classify(std::current_exception());
        error = failure.message;
        if (code == ExitCode::kOk) code = failure.code;
        std::cerr << error << (error.ends_with('\n') ? "" : "\n");
      }
      results.push_back({{"file", file}, {"ok", error.empty()}, {"error", error}});
      if (!json && error.empty()) std::cout << file << ": ok\n";
    }
    if (json)
      std::cout << nlohmann::ordered_json{{"schema", "orrery.check/1"}, {"files", results}}.dump(2)
                << "\n";
    return code;
  }
};

const RegisterVerb<CheckArguments> registered_check("check",
                                                    "parse and validate files without simulating");

/// Names of the kinds of files that have a schema.
std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& [name, kind] : FileKinds::items())
    if (kind.entry.schema) all.push_back(name);
  return all;
}

struct SchemaArguments {
  std::string kind = "experiment";
  std::vector<std::string> files;
  bool json = true;  ///< there is no other form

  void take(Options& options) {
    options.option("KIND", kind, "experiment (default), or " + comma_joined(names()));
    options.options("--of", files, "print the kinds of these files instead, one a line");
    options.flag("--json", json, "accepted; JSON is the only form of a schema");
  }

  ExitCode run() const {
    for (const std::string& file : files) std::cout << file_kind(file) << "\t" << file << "\n";
    if (!files.empty()) return ExitCode::kOk;
    const FileKind* found = FileKinds::find(kind);
    if (found == nullptr || !found->schema) {
      const std::string near = nearest_name(kind, names());
      throw UsageError(fmt::format("no schema '{}'{}; there are: {}", kind,
                                   near.empty() ? "" : "; did you mean " + near + "?",
                                   comma_joined(names())));
    }
    std::cout << found->schema().dump(2) << "\n";
    return ExitCode::kOk;
  }
};

const RegisterVerb<SchemaArguments> registered_schema(
    "schema", "print the JSON Schema (draft-07) of YAML files");

}  // namespace
}  // namespace orrery
